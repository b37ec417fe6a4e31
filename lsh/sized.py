"""Sketches of texts together with the number of their different shingles."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.sketch import compact, signatures
from lsh.tokens import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.columns import Column
    from lsh.fingerprint import Fingerprinter

__all__ = ["Sized", "sized"]


class Sized(NamedTuple):
    """The sketches of n sets, uint8[n, slots], and their sizes, int64[n]; 0 for a blank text."""

    sketches: NDArray[np.uint8]
    sizes: NDArray[np.int64]


def sized(fingerprinter: Fingerprinter, texts: Column) -> Sized:
    """Return the sketches of n texts, as `fingerprint` has them, and their different shingles."""
    shingles = distinct(fingerprinter.shingles(texts))
    signed = signatures(shingles.hashes, shingles.starts, fingerprinter.parameters.slots)
    return Sized(compact(signed), np.diff(shingles.starts))
