"""Reads everything that a store holds, in the order of its keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rocksdict import Rdict

from lsh.index import BucketKeys
from lsh.index.layout import Bucket, unpack_bucket
from worker.index.keyspace import BUCKETS, CELLS, OPEN_RUN, RECORDS, of_run, place_in
from worker.index.open_run import unpack_open_cells
from worker.index.record_pages import unpack_page
from worker.index.run_layout import MARK, unpack_cells
from worker.index.run_list import Run, RunList
from worker.index.spans import span

__all__ = ["CellsPage", "Contents"]


class CellsPage(NamedTuple):
    """Cells of one run (None: the open run), and where they are stored.

    keys: the n buckets. documents: uint32[n]. marks: how many more cells are marks.
    """

    run: Run | None
    page: int
    keys: BucketKeys
    documents: npt.NDArray[np.uint32]
    marks: int


class Contents:
    """Everything in a store. What reads it raises `ReadingEnded` and ValueError at damage."""

    def __init__(self, db: Rdict, inserted: int, runs: RunList) -> None:
        """Take the database, how many documents have records, and the list of runs."""
        self._db = db
        self.inserted = inserted
        self.runs = runs

    def records(self) -> Iterator[bytes]:
        """Return the records of all documents, by their numbers."""
        for _, page in span(self._db, RECORDS):
            yield from unpack_page(page)

    def cells(self) -> Iterator[CellsPage]:
        """Return the cells of all runs and of the open run."""
        columns = np.array(self.runs.columns, np.uint8)
        for run in self.runs.runs:
            for key, page in span(self._db, of_run(CELLS, run.number)):
                place = place_in(key)
                hashes, documents = unpack_cells(page)
                keys = BucketKeys(np.full(len(hashes), columns[place.slot], np.uint8), hashes)
                yield _without_marks(run, place.page, keys, documents)
        for _, packed in span(self._db, OPEN_RUN):
            slots, hashes, documents = unpack_open_cells([packed])
            yield _without_marks(None, 0, BucketKeys(columns[slots], hashes), documents)

    def grown(self) -> Iterator[tuple[bytes, bytes]]:
        """Return the keys of all grown buckets, and their bytes."""
        return span(self._db, BUCKETS)

    def buckets(self) -> dict[bytes, Bucket]:
        """Return all buckets by key, in memory."""
        found: dict[bytes, Bucket] = {}
        for _, _, keys, documents, _ in self.cells():
            found |= {
                key: [number] for key, number in zip(keys.packed(), documents.tolist(), strict=True)
            }
        return found | {key: unpack_bucket(packed) for key, packed in self.grown()}


def _without_marks(
    run: Run | None, page: int, keys: BucketKeys, documents: npt.NDArray[np.uint32]
) -> CellsPage:
    cells = documents < MARK
    marks = len(cells) - int(np.count_nonzero(cells))
    return CellsPage(run, page, keys.take(cells), documents[cells], marks)
