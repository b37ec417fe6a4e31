"""Reads everything that a store holds, in the order of its keys."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rocksdict import Rdict

from lsh import _core
from worker.index.keyspace import (
    CELLS,
    GROWN,
    OPEN_RUN,
    RECORDS,
    Range,
    grown_key,
    number_key,
    of_run,
    page_key,
)
from worker.index.rocksdb import span
from worker.index.run_tables import Pages

DOCUMENTS_A_PAGE = 8

Key = tuple[int, int]
"""A bucket's column and key."""


class Bucket(NamedTuple):
    """The numbers of a bucket's documents, in their order, and whether it has overflow buckets."""

    documents: list[int]
    beyond: bool


class GrownBucket(NamedTuple):
    """The documents of a bucket that has grown, as of an era."""

    era: int
    key: Key
    bucket: Bucket


class CellsPage(NamedTuple):
    """Cells of one run (None: the memtable).

    columns: uint8[c]. keys: uint64[c]. documents: int64[c], their numbers. others: how many more
    there are, of ids and marks.
    """

    run: int | None
    columns: npt.NDArray[np.uint8]
    keys: npt.NDArray[np.uint64]
    documents: npt.NDArray[np.int64]
    others: int


class StoredRecord(NamedTuple):
    """A document's record; its time is in ms, or a mark of the clock."""

    sequence: int
    time: int
    shingles: int
    sketch: bytes
    id: bytes


class Contents:
    """Everything in a store. What reads it raises `ReadingEnded` and ValueError at damage."""

    def __init__(self, db: Rdict, pages: Pages, runs: bytes | None, inserted: int) -> None:
        """Take the database, the list of its runs, and how many documents have records.

        Raises:
            ValueError: the list isn't as it was written, or tables of runs are missing.
        """
        self._db = db
        self._pages = pages
        self._core = _core.Contents(runs, inserted)
        self.inserted = inserted
        pages.check(self._core.tables)

    @property
    def first(self) -> int:
        """Return the number of the first document that is kept."""
        return self.eras[0][1]

    @property
    def eras(self) -> list[tuple[int, int]]:
        """Return the eras that are kept, oldest first: number, first document."""
        return self._core.eras

    @property
    def columns(self) -> list[int]:
        """Return the columns, ascending, without that of ids."""
        return self._core.columns

    @property
    def runs(self) -> dict[int, int]:
        """Return how many cells each run has."""
        return {number: cells for number, _, cells in self._core.runs}

    def records(self) -> Iterator[StoredRecord | None]:
        """Return the records of all documents that are kept, by number; None of forgotten ones."""
        page = self.first // DOCUMENTS_A_PAGE
        keys = Range(number_key(RECORDS, page), RECORDS.high)
        pages = (self._core.records(*pair) for pair in span(self._db, keys))
        kept = islice(chain.from_iterable(pages), self.first % DOCUMENTS_A_PAGE, None)
        return (None if one is None else StoredRecord(*one) for one in kept)

    def record(self, number: int) -> StoredRecord | None:
        """Return the record of a document; None of one that was forgotten."""
        key = number_key(RECORDS, number // DOCUMENTS_A_PAGE)
        (page,) = self._pages.get(None, [key])
        if page is None:
            raise ValueError(f"document {number} has no record")
        record = self._core.records(key, page)[number % DOCUMENTS_A_PAGE]
        return None if record is None else StoredRecord(*record)

    def cells(self, band: int | None = None) -> Iterator[CellsPage]:
        """Return the cells of all runs and of the memtable, but not those of ids; or of a band."""
        for run in self.runs:
            keys = of_run(CELLS, run) if band is None else self._of_band(run, band)
            for pair in self._pages.of(run, keys):
                yield CellsPage(run, *self._core.cells(*pair))
        for pair in span(self._db, OPEN_RUN):
            columns, hashes, documents, others = self._core.cells(*pair)
            own = slice(None) if band is None else columns == band
            yield CellsPage(None, columns[own], hashes[own], documents[own], others)

    def _of_band(self, run: int, band: int) -> Range:
        slot = self.columns.index(band)
        return Range(page_key(run, slot, 0), page_key(run, slot + 1, 0))

    def grown(self, band: int | None = None) -> Iterator[GrownBucket]:
        """Return all grown buckets, or those of a band, by era."""
        spans = [GROWN]
        if band is not None:
            eras = [grown_key(era, b"") for era, _ in self.eras]
            spans = [Range(era + bytes([band]), era + bytes([band + 1])) for era in eras]
        for keys in spans:
            for pair in span(self._db, keys):
                era, column, key, documents, beyond = self._core.bucket(*pair)
                yield GrownBucket(era, (column, key), Bucket(documents, beyond))

    def era_of(self, document: int) -> int:
        """Return the era of a document; of one that is not kept any more, the oldest."""
        return max((n for n, first in self.eras if first <= document), default=self.eras[0][0])

    def buckets(self) -> dict[Key, Bucket]:
        """Return all buckets by key, in memory, with the documents that are kept.

        The newest write defines a bucket: its cell, or its grown form. Of one era, this is its
        grown form.
        """
        found: dict[Key, tuple[int, Bucket]] = {}
        for page in self.cells():
            cells = zip(page.columns.tolist(), page.keys.tolist(), page.documents, strict=True)
            for column, key, document in cells:
                number = int(document)
                cell = self.era_of(number), Bucket([number], beyond=False)
                found[column, key] = max(found.get((column, key), cell), cell)
        for era, place, bucket in self.grown():
            if place not in found:
                raise ValueError(f"bucket {place[1]:016x} of band {place[0]} has grown, not begun")
            if era >= found[place][0]:
                found[place] = era, bucket
        kept: dict[Key, Bucket] = {}
        for place, (_, bucket) in found.items():
            documents = [one for one in bucket.documents if one >= self.first]
            if documents or bucket.beyond:
                kept[place] = Bucket(documents, bucket.beyond)
        return kept
