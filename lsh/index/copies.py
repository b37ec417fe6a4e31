"""Finds the buckets of exact copies, of which only one has to be read.

A copy has the keys of its original. If each bucket of the original was new when it came, it is in
all of them. So whoever has found it in one bucket knows the others that have not grown since. To
read them costs most of what a copy costs, and they are as many as there are bands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.index.buckets import Buckets, spread
from lsh.index.layout import lone_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.batch import DocumentBatch
    from lsh.index.buckets import BucketReader
    from lsh.index.cells import Cells

__all__ = ["read_buckets"]


def read_buckets(reader: BucketReader, batch: DocumentBatch, cells: Cells) -> Buckets:
    """Return the buckets of a batch's cells that exist, by run."""
    if batch.texts is None or not len(batch.columns):
        return Buckets.of(reader.buckets(cells.keys))
    leading = cells.keys.columns == batch.columns[-1]
    first = _read(reader, cells, leading)
    copied, originals = _copied(reader, batch, cells, first)
    sole = reader.sole(cells.keys.take(copied)) if len(copied) else np.zeros(0, bool)
    known = Buckets(copied[sole], np.ones(int(sole.sum()), np.int64), originals[sole])
    left = ~leading
    left[known.places] = False
    return Buckets.joined([first, known, _read(reader, cells, left)])


def _read(reader: BucketReader, cells: Cells, chosen: NDArray[np.bool_]) -> Buckets:
    """Return the buckets of some runs, by run. chosen: bool[r]."""
    runs = np.flatnonzero(chosen)
    found = Buckets.of(reader.buckets(cells.keys.take(runs)))
    return Buckets(runs[found.places], found.sizes, found.entries)


def _copied(
    reader: BucketReader, batch: DocumentBatch, cells: Cells, first: Buckets
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the other runs of copies of lone documents, ascending, and these: int64[k] each.

    first: the buckets of the last column, which are read.
    """
    rows, numbers = _originals(reader, batch, cells, first)
    columns, documents = len(batch.columns), len(batch.ids)
    by_row = np.empty((columns, documents), np.int64)
    runs = np.repeat(np.arange(len(cells.sizes)), cells.sizes).reshape(columns, documents)
    np.put_along_axis(by_row, cells.rows.reshape(columns, documents), runs, axis=1)
    others = by_row[:-1, rows]
    copied, at = np.unique(others, return_index=True)
    return copied, np.broadcast_to(numbers, others.shape).reshape(-1)[at]


def _originals(
    reader: BucketReader, batch: DocumentBatch, cells: Cells, first: Buckets
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the documents that are copies of lone ones, and the numbers of these: int64[m] each.

    A document that may have moved may not be in all of its buckets any more.
    """
    rows, runs = cells.pairs(first.places)
    at = np.searchsorted(first.places, runs)
    sizes = first.sizes[at]
    entries = first.entries[spread(first.starts[at], sizes)]
    rows = np.repeat(rows, sizes)
    settled = entries >= reader.moved_below
    rows, entries = rows[settled], entries[settled]
    numbers, which = np.unique(entries, return_inverse=True)
    found = [lone_text(one) if one else None for one in reader.records(numbers.tolist())]
    lone = np.array([one is not None for one in found], bool)
    texts = np.array([one or 0 for one in found], np.uint64)
    assert batch.texts is not None  # noqa: S101 -- the caller has looked
    same = lone[which] & (texts[which] == batch.texts[rows])
    copies, first_of = np.unique(rows[same], return_index=True)
    return copies, entries[same][first_of]
