"""The cells of a batch: each document's key in each column, grouped by bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.index.buckets import spread
from lsh.index.layout import BucketKeys
from lsh.ordered import lengths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Cells", "cells_of"]


class Cells(NamedTuple):
    """A batch's cells, sorted into runs of cells in the same bucket.

    keys: the r buckets of the runs, ascending within a column.
    sizes: int64[r], the number of cells in each run.
    starts: int64[r], where each run begins in ``rows``.
    rows: int64[c * n], the document of each cell, ascending within a run.
    """

    keys: BucketKeys
    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]
    rows: NDArray[np.int64]

    def pairs(self, runs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the document and the run of each cell in these runs, in sequence order.

        runs: int64[k], indices of runs, ascending.
        """
        sizes = self.sizes[runs]
        rows = self.rows[spread(self.starts[runs], sizes)]
        by_row = np.argsort(rows, kind="stable")
        return rows[by_row], np.repeat(runs, sizes)[by_row]


def cells_of(columns: Sequence[int], keys: NDArray[np.uint64]) -> Cells:
    """Return the cells of n > 0 documents.

    columns: c numbers of columns.
    keys: uint64[c, n], the documents' keys in each.
    """
    count, documents = keys.shape
    order = np.argsort(keys, axis=1)
    ordered = np.take_along_axis(keys, order, axis=1)
    changes = np.ones((count, documents), bool)
    changes[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts = np.flatnonzero(changes)
    sizes = lengths(starts, keys.size)
    rows = order.reshape(-1)
    _sort_within(rows, starts, sizes)
    return Cells(
        BucketKeys(np.asarray(columns, np.uint8)[starts // documents], ordered.reshape(-1)[starts]),
        sizes,
        starts,
        rows,
    )


def _sort_within(
    rows: NDArray[np.int64], starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> None:
    """Sort the rows of each run, in place.

    Few runs have several. So this takes less time than to sort keys stably.
    """
    shared = np.flatnonzero(sizes > 1)
    places = spread(starts[shared], sizes[shared])
    its_rows = rows[places]
    rows[places] = its_rows[np.lexsort((its_rows, np.repeat(shared, sizes[shared])))]
