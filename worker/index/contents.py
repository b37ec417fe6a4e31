"""Reads everything that a store holds, in the order of its keys."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rocksdict import Rdict

from lsh.index import BucketKeys
from lsh.index.layout import BEYOND, Bucket, unpack_bucket
from worker.index.keyspace import (
    GROWN,
    OPEN_RUN,
    RECORDS,
    Range,
    grown_place,
    number_key,
    place_in,
)
from worker.index.open_run import unpack_open_cells
from worker.index.record_pages import DOCUMENTS_A_PAGE, unpack_page
from worker.index.run_layout import MARK, unpack_cells
from worker.index.run_list import ID_COLUMN, Run, RunList
from worker.index.run_tables import Pages
from worker.index.spans import span

__all__ = ["CellsPage", "Contents"]


class CellsPage(NamedTuple):
    """Cells of one run (None: the open run), and where they are stored.

    keys: the n buckets. documents: int64[n], their numbers. marks: how many more cells are marks.
    """

    run: Run | None
    page: int
    keys: BucketKeys
    documents: npt.NDArray[np.int64]
    marks: int


class Contents:
    """Everything in a store. What reads it raises `ReadingEnded` and ValueError at damage."""

    def __init__(self, db: Rdict, pages: Pages, inserted: int, runs: RunList) -> None:
        """Take the database, how many documents have records, and the list of runs."""
        self._db = db
        self._pages = pages
        self.inserted = inserted
        self.runs = runs

    def records(self) -> Iterator[bytes]:
        """Return the records of all documents that are kept, by their numbers."""
        first = self.runs.eras.first
        page = first // DOCUMENTS_A_PAGE
        kept = Range(number_key(RECORDS, page), RECORDS.high)
        records = chain.from_iterable(unpack_page(value) for _, value in span(self._db, kept))
        return islice(records, first % DOCUMENTS_A_PAGE, None)

    def cells(self) -> Iterator[CellsPage]:
        """Return the cells of all runs, and those of the open run that aren't of ids."""
        columns = np.array(self.runs.columns, np.uint8)
        for run in self.runs.runs:
            for key, page in self._pages.of(run.number):
                place = place_in(key)
                hashes, documents = unpack_cells(page)
                keys = BucketKeys(np.full(len(hashes), columns[place.slot], np.uint8), hashes)
                yield _without_marks(run, place.page, keys, documents, run.end)
        for _, packed in span(self._db, OPEN_RUN):
            slots, hashes, documents = unpack_open_cells([packed])
            of_ids = columns[slots] == ID_COLUMN
            slots, hashes, documents = slots[~of_ids], hashes[~of_ids], documents[~of_ids]
            keys = BucketKeys(columns[slots], hashes)
            yield _without_marks(None, 0, keys, documents, self.inserted)

    def grown(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Return all grown buckets: the era, the bucket's key, and the bytes; by era."""
        for key, packed in span(self._db, GROWN):
            yield *grown_place(key), packed

    def buckets(self) -> dict[bytes, Bucket]:
        """Return all buckets by key, in memory, with the documents that are kept."""
        eras = self.runs.eras
        found: dict[bytes, tuple[int, Bucket]] = {}
        for _, _, keys, documents, _ in self.cells():
            if len(keys.columns) and keys.columns[0] == ID_COLUMN:
                continue
            for key, number in zip(keys.packed(), documents.tolist(), strict=True):
                found[key] = max(found.get(key, (-1, [])), (eras.of(number), [number]))
        for era, key, packed in self.grown():
            if era >= found[key][0]:
                found[key] = (era, unpack_bucket(packed, self.inserted))
        kept = {
            key: [one for one in two if one >= eras.first or one == BEYOND]
            for key, (_, two) in found.items()
        }
        return {key: bucket for key, bucket in kept.items() if bucket}


def _without_marks(
    run: Run | None, page: int, keys: BucketKeys, documents: npt.NDArray[np.uint32], end: int
) -> CellsPage:
    cells = documents < MARK
    marks = len(cells) - int(np.count_nonzero(cells))
    lows = documents[cells].astype(np.int64)
    numbers = end - 1 - ((end - 1 - lows) & (MARK - 1))
    return CellsPage(run, page, keys.take(cells), numbers, marks)
