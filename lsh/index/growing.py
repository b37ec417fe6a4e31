"""The buckets of a batch while its documents are inserted into them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.index.buckets import Buckets, spread
from lsh.index.layout import BEYOND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.layout import Bucket

__all__ = ["GrowingBuckets"]


class GrowingBuckets:
    """The buckets of a batch's runs, in arrays; see `Cells`.

    sizes: int64[r], how many entries the bucket of each run has.
    """

    def __init__(self, found: Buckets, runs: int) -> None:
        """Take the buckets that exist, by run; all others are empty. runs: how many there are."""
        self.sizes = np.zeros(runs, np.int64)
        self.sizes[found.places] = found.sizes
        self._starts = np.zeros(runs, np.int64)
        self._starts[found.places] = found.starts
        self._entries = found.entries

    def entries(self, runs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the entries of some buckets, one bucket after the other."""
        return self._entries[spread(self._starts[runs], self.sizes[runs])]

    def lists(self, runs: NDArray[np.int64]) -> dict[int, Bucket]:
        """Return some buckets by run: int64[k]."""
        lists = self.of(runs).lists()
        return dict(zip(runs.tolist(), lists, strict=True))

    def of(self, runs: NDArray[np.int64]) -> Buckets:
        """Return some buckets by run: int64[k]."""
        return Buckets(runs, self.sizes[runs], self.entries(runs))

    def crowded(self, runs: NDArray[np.int64], capacity: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some buckets are full, or have finer ones: bool[k].

        capacity: int64[k], that of each.
        """
        sizes = self.sizes[runs]
        crowded: NDArray[np.bool_] = sizes >= capacity
        filled = np.flatnonzero(sizes)
        last = self._entries[self._starts[runs[filled]] + sizes[filled] - 1]
        crowded[filled[last == BEYOND]] = True
        return crowded

    def put(
        self, runs: NDArray[np.int64], sizes: NDArray[np.int64], entries: NDArray[np.int64]
    ) -> None:
        """Replace some buckets: int64[k], their sizes, and int64[sum of sizes], their entries."""
        self._starts[runs] = len(self._entries) + np.cumsum(sizes) - sizes
        self.sizes[runs] = sizes
        self._entries = np.concatenate((self._entries, entries))
