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
    from lsh.shingles import Shingles

__all__ = ["Sized", "sized", "sized_sets"]


class Sized(NamedTuple):
    """The sketches of n sets, uint8[n, slots], and their sizes, int64[n]; 0 for a blank text."""

    sketches: NDArray[np.uint8]
    sizes: NDArray[np.int64]


def sized(fingerprinter: Fingerprinter, texts: Column) -> Sized:
    """Return the sketches of n texts, as `fingerprint` has them, and their different shingles."""
    return sized_sets(distinct(fingerprinter.shingles(texts)), fingerprinter.parameters.slots)


def sized_sets(sets: Shingles, slots: int) -> Sized:
    """Return the sketches and sizes of n sets of hashes; see `lsh.tokens.distinct`."""
    return Sized(compact(signatures(sets.hashes, sets.starts, slots)), np.diff(sets.starts))
