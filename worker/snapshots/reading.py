"""Reads a shard's store as it lies on disk, also while a worker writes to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rocksdict import AccessType, Options, Rdict

from worker.absence import BUCKETS_BELOW, ReadingEnded, StoredFilter, span
from worker.closing import Closing
from worker.coverage import Coverage
from worker.store import (
    _COVERAGE,
    _HEADER,
    _PROGRESS,
    _RECORDS,
    Header,
    StoreDamaged,
    _progress,
)

__all__ = ["Facts", "Reading"]


class Facts(NamedTuple):
    """What a store says of itself.

    ``offset``, ``now`` (ms), ``documents`` and ``coverage`` are as of the last flush; ``keys`` is
    RocksDB's estimate, of buckets and records together; ``size_bytes`` is that on disk.
    """

    header: Header
    offset: int
    now: int
    documents: int
    keys: int
    size_bytes: int
    coverage: Coverage


class Reading(Closing):
    """A store, opened for reading only."""

    def __init__(self, path: Path) -> None:
        """Open.

        Raises:
            StoreDamaged: RocksDB can't, whatever the reason.
        """
        self._path = path
        try:
            self._db = Rdict(
                str(path),
                Options(raw_mode=True),
                access_type=AccessType.read_only(False),  # noqa: FBT003 -- rocksdict's signature
            )
        except Exception as error:
            raise StoreDamaged(f"{path}: {error}") from error

    def facts(self) -> Facts:
        """Give what the store says of itself.

        Raises:
            StoreDamaged: it says nothing.
        """
        header = self._one(_HEADER)
        if header is None:
            raise StoreDamaged(f"{self._path}: no header")
        try:
            known = dict(json.loads(header))
        except ValueError as error:
            raise StoreDamaged(f"{self._path}: its header can't be read: {error}") from error
        known.pop("format", None)
        progress = (self._one(_PROGRESS) or b"").ljust(_progress.size, b"\0")
        offset, now, documents = _progress.unpack(progress)
        try:
            coverage = Coverage.decode(self._one(_COVERAGE), offset)
        except ValueError as error:
            raise StoreDamaged(f"{self._path}: {error}") from error
        return Facts(
            known,
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
        """Give all buckets in order of band and key.

        Raises:
            StoreDamaged: a block is damaged.
        """
        return self._span(b"", bytes([BUCKETS_BELOW]))

    def filter(self) -> StoredFilter | None:
        """Give the filter of its buckets; None if it is to be made when the store is opened.

        Raises:
            StoreDamaged: it can't be read.
        """
        try:
            return StoredFilter.of(self._db)
        except ReadingEnded as error:
            raise StoreDamaged(f"{self._path}: its filter: {error}") from error

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Give all document records in order of their sequence numbers.

        Raises:
            StoreDamaged: a block is damaged.
        """
        for key, value in self._span(_RECORDS, _HEADER):
            yield int.from_bytes(key[1:], "big"), value

    def _span(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, bytes]]:
        try:
            yield from span(self._db, low, high)
        except ReadingEnded as error:
            raise StoreDamaged(f"{self._path}: {error}") from error

    def close(self) -> None:
        """Close."""
        self._db.close()
