"""Reads a shard's store as it is on disk, even while a worker writes to it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rocksdict import AccessType, Options, Rdict

from lsh._core import Opening, Shard, check
from worker.closing import Closing
from worker.index.contents import Contents
from worker.index.errors import StoreDamaged
from worker.index.keyspace import (
    COVERAGE,
    HEADER,
    ID_LISTS,
    PROGRESS,
    RENEWALS,
    RUNS,
    VERDICTS,
    Progress,
    StoreHeader,
    check_header,
    unpack_header,
)
from worker.index.rocksdb import ReadingEnded, check_mode, span
from worker.index.run_tables import Pages, family_names
from worker.index.store_reader import StoreReader, read
from worker.stages.order import Coverage

_SIZE = "rocksdb.total-sst-files-size"


class StoreFacts(NamedTuple):
    """A store's header, progress and size.

    ``offset``, ``now`` (ms; None until there is one), ``documents`` and ``coverage`` are as of the
    last flush; ``keys`` is how many records and cells of runs it has; ``size_bytes`` is the size on
    disk.
    """

    header: StoreHeader
    offset: int
    now: int | None
    documents: int
    keys: int
    size_bytes: int
    coverage: Coverage


class ReadOnlyStore(Closing):
    """A store, opened read-only."""

    def __init__(self, path: Path) -> None:
        """Open the store.

        Raises:
            StoreDamaged: RocksDB can't open it, whatever the reason.
        """
        self._path = path
        check_mode(path)
        try:
            names = family_names(path)
            self._db = Rdict(
                str(path),
                Options(raw_mode=True),
                access_type=AccessType.read_only(False),  # noqa: FBT003 -- rocksdict's signature
            )
            names += family_names(path)  # The worker may have added or dropped some meanwhile.
        except Exception as error:
            raise self._damaged(error) from error
        self._pages = Pages(self._db, sorted(set(names)), self._damaged)

    def _damaged(self, error: Exception) -> StoreDamaged:
        return StoreDamaged(f"{self._path}: {error}")

    def facts(self) -> StoreFacts:
        """Return the store's facts.

        Raises:
            StoreDamaged: they can't be read, or there is no header.
        """
        packed = self._one(HEADER)
        if packed is None:
            raise StoreDamaged(f"{self._path}: no header")
        header = unpack_header(packed, self._path)
        contents = self.contents()
        try:
            progress = Progress.unpack(self._one(PROGRESS))
            coverage = Coverage.decode(self._one(COVERAGE), progress.offset)
        except ValueError as error:
            raise self._damaged(error) from error
        return StoreFacts(
            header,
            progress.offset,
            progress.now,
            progress.documents,
            progress.inserted - contents.first + sum(contents.runs.values()),
            int(self._db.property_int_value(_SIZE) or 0) + self._pages.sum(_SIZE),
            coverage,
        )

    def _one(self, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._db.get(key)
        except Exception as error:
            raise StoreDamaged(f"{self._path}: {error}") from error
        return value

    def contents(self) -> Contents:
        """Return a reader of everything in the store.

        Raises:
            StoreDamaged: its progress or its list of runs can't be read.
        """
        try:
            inserted = Progress.unpack(self._one(PROGRESS)).inserted
            return Contents(self._db, self._pages, self._one(RUNS), inserted)
        except ValueError as error:
            raise self._damaged(error) from error

    def shard(self) -> Shard:
        """Return the shard, with what an open store keeps in memory. Nothing is written to it.

        Raises:
            StoreDamaged: it can't be read.
        """
        try:
            progress = Progress.unpack(self._one(PROGRESS))
            opening = Opening(
                run_documents=1,
                window_ms=None,
                inserted=progress.inserted,
                clock=progress.clock,
            )
            opening.give(self._pages.get(None, opening.keys()))
            self._pages.check(opening.tables()[0])
            return read(opening, self._db)
        except (ReadingEnded, ValueError) as error:
            raise self._damaged(error) from error

    def check(self) -> None:
        """Check the values that neither `contents` nor `shard` reads.

        Raises:
            ReadingEnded: not everything can be read.
            ValueError: one isn't as it was written.
        """
        for kind in (VERDICTS, ID_LISTS, RENEWALS):
            for pair in span(self._db, kind):
                check(*pair)

    def reader(self) -> StoreReader:
        """Return a reader for queries. It needs as much memory for filters as an open store.

        Raises:
            HeaderMismatch: the store has another format than this neardup reads.
            StoreDamaged: what it needs can't be read.
        """
        packed = self._one(HEADER) or b""
        check_header(packed, unpack_header(packed, self._path), self._path)
        return StoreReader(self._path, self.shard(), self._pages)

    def close(self) -> None:
        """Close the store."""
        self._pages.close()
        self._db.close()
