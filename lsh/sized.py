"""Sketches of texts together with the number of their different shingles."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.arrays import same_arrays
from lsh.sketch import compact, signatures

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from lsh.columns import Column
    from lsh.fingerprint import Fingerprinter
    from lsh.shingles import Shingles


class Sized(NamedTuple):  # noqa: PLW1641 -- arrays have no hash
    """The sketches of n sets, uint8[n, slots], and their sizes, int64[n]; 0 for a blank text."""

    sketches: NDArray[np.uint8]
    sizes: NDArray[np.int64]

    def __eq__(self, other: object) -> bool:
        """Return whether the other one has the same sketches and sizes."""
        return isinstance(other, Sized) and same_arrays(self, other)

    def __ne__(self, other: object) -> bool:
        """Return whether it has not. Tuples would compare element by element."""
        return not self == other


def sizes_of(sizes: ArrayLike, count: int) -> NDArray[np.int64]:
    """Return the sizes of `count` sets: int64[count].

    Raises ValueError if there are more or fewer, or one is no integer of at least 0.
    """
    given = np.asarray(sizes)
    if given.shape != (count,) or (count and (given.dtype.kind not in "iu" or given.min() < 0)):
        raise ValueError(f"sizes: takes {count} integers of at least 0")
    return given.astype(np.int64)


def sized(fingerprinter: Fingerprinter, texts: Column) -> Sized:
    """Return the sketches of n texts, as `fingerprint` has them, and their different shingles."""
    signed = fingerprinter.sign_sets(texts)
    return Sized(signed.sketches, signed.shingles.astype(np.int64))


def sized_sets(sets: Shingles, slots: int) -> Sized:
    """Return the sketches and sizes of n sets of hashes; see `lsh.Shingles.distinct`."""
    return Sized(compact(signatures(sets.hashes, sets.starts, slots)), np.diff(sets.starts))
