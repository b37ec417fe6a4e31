"""Reads a shard's store as it is on disk, even while a worker writes to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rocksdict import AccessType, Options, Rdict

from worker.files.closing import Closing
from worker.index.bucket_filter import ReadingEnded, StoredFilter, span
from worker.index.errors import StoreDamaged
from worker.index.header import StoreHeader, unpack_header
from worker.index.keyspace import (
    BUCKETS,
    COVERAGE,
    HEADER,
    PROGRESS,
    RECORDS,
    Progress,
    Range,
    sequence_of,
)
from worker.index.rocksdb import check_mode
from worker.stages.coverage import Coverage

__all__ = ["ReadOnlyStore", "StoreFacts"]


class StoreFacts(NamedTuple):
    """A store's header, progress and size.

    ``offset``, ``now`` (ms), ``documents`` and ``coverage`` are as of the last flush; ``keys`` is
    RocksDB's estimate of buckets and records together; ``size_bytes`` is the size on disk.
    """

    header: StoreHeader
    offset: int
    now: int
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
            self._db = Rdict(
                str(path),
                Options(raw_mode=True),
                access_type=AccessType.read_only(False),  # noqa: FBT003 -- rocksdict's signature
            )
        except Exception as error:
            raise StoreDamaged(f"{path}: {error}") from error

    def facts(self) -> StoreFacts:
        """Return the store's facts.

        Raises:
            StoreDamaged: they can't be read, or there is no header.
        """
        packed = self._one(HEADER)
        if packed is None:
            raise StoreDamaged(f"{self._path}: no header")
        header = unpack_header(packed, self._path)
        try:
            offset, now, documents = Progress.unpack(self._one(PROGRESS))
            coverage = Coverage.decode(self._one(COVERAGE), offset)
        except ValueError as error:
            raise StoreDamaged(f"{self._path}: {error}") from error
        return StoreFacts(
            header,
            offset,
            now,
            documents,
            int(self._db.property_int_value("rocksdb.estimate-num-keys") or 0),
            int(self._db.property_int_value("rocksdb.total-sst-files-size") or 0),
            coverage,
        )

    def _one(self, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._db.get(key)
        except Exception as error:
            raise StoreDamaged(f"{self._path}: {error}") from error
        return value

    def buckets(self) -> Iterator[tuple[bytes, bytes]]:
        """Return all buckets, in order of band and key.

        Raises:
            StoreDamaged: a block is damaged.
        """
        return self._span(BUCKETS)

    def filter(self) -> StoredFilter | None:
        """Return the stored bucket filter; None if there is none, and opening will build it.

        Raises:
            StoreDamaged: it can't be read.
        """
        try:
            return StoredFilter.of(self._db)
        except ReadingEnded as error:
            raise StoreDamaged(f"{self._path}: its filter: {error}") from error

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Return all document records, in order of their sequence numbers.

        Raises:
            StoreDamaged: a block is damaged.
        """
        for key, value in self._span(RECORDS):
            yield sequence_of(key), value

    def _span(self, keys: Range) -> Iterator[tuple[bytes, bytes]]:
        try:
            yield from span(self._db, keys)
        except ReadingEnded as error:
            raise StoreDamaged(f"{self._path}: {error}") from error

    def close(self) -> None:
        """Close the store."""
        self._db.close()
