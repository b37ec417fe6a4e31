"""The RocksDB under one index shard: a sorted map, its offset, and a header.

The write-ahead log is off, because the log of fingerprints is one. What makes
that sound is that everything lives in one column family and that every write batch
carries the offset it reaches: whatever a crash leaves on disk is a state that the shard
really was in, and the log replays the rest.
"""

from __future__ import annotations

import json
import logging
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from rocksdict import Cache, Checkpoint, Rdict, WriteBatch, WriteOptions

from worker.absence import BUCKETS_BELOW, ReadingEnded, StoredFilter
from worker.coverage import Coverage
from worker.probe import UNWATCHED, Probe, probing
from worker.rocks import HELD_FROM, SLOWED_FROM, UNFLUSHED_TABLES, StoreOptions, tuned

__all__ = [
    "BandStore",
    "Header",
    "HeaderMismatch",
    "StoreDamaged",
    "StoreOptions",
    "aside_of",
    "put_aside",
]

_log = logging.getLogger(__name__)

FORMAT_VERSION = 3
"""Up to 2, the offset was one in a log of the shard's own."""

_RECORDS = b"\xfe"
_HEADER = b"\xffheader"
_PROGRESS = b"\xffprogress"
_progress = struct.Struct("<qqq")
"""Offset, now, documents; the documents were not counted from the beginning."""
_COVERAGE = b"\xfftiles"
_sequence = struct.Struct(">Q")
_BACKGROUND = (
    "rocksdb.mem-table-flush-pending",
    "rocksdb.num-running-flushes",
    "rocksdb.compaction-pending",
    "rocksdb.num-running-compactions",
)
_WAIT_SECONDS = 0.005
_SLOWED_SECONDS = 0.05
_TELL_SECONDS = 10.0

Header = dict[str, str | int | float | bool]


class HeaderMismatch(Exception):  # noqa: N818 -- says what was found
    """The store was made for other parameters, another topic, or by another version."""


class StoreDamaged(Exception):  # noqa: N818 -- says what was found
    """What RocksDB reads isn't what was written; the store has to be rebuilt."""


class BandStore:
    """One shard's buckets and document records.

    Not thread-safe. ``offset`` is the offset in the log of fingerprints from which to read on;
    ``now`` is the running maximum of the log's time, in ms; ``documents`` were judged up to
    there; ``coverage`` says of which offsets of the documents frames were applied.

    Every method that reads or writes raises `StoreDamaged` if RocksDB finds other bytes
    than it wrote, and OSError if the disk is full or refuses. After either, RocksDB takes no
    more writes; ``offset`` has moved only if the write it belongs to was applied.
    """

    def __init__(  # noqa: PLR0913 -- what a store is made of, and who watches
        self,
        path: Path,
        header: Header,
        *,
        cache: Cache | None = None,
        options: StoreOptions | None = None,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], None] = sleep,
        on_keys: Callable[[int, int], None] = lambda _count, _total: None,
        probe: Probe = UNWATCHED,
    ) -> None:
        """Open or create.

        A filter of another size is made anew, of all keys: ``on_keys`` is told how many more
        were read, of about how many, and what it raises ends the opening.

        Raises:
            HeaderMismatch: it was made with other parameters; the message names them.
            StoreDamaged: files are missing, or not what was written.
            OSError: RocksDB can't open it (the message is RocksDB's own).
        """
        self.path = path
        self._options = options or StoreOptions()
        self._clock = clock
        self._sleep = sleep
        self._probe = probe
        path.parent.mkdir(parents=True, exist_ok=True)
        if not (path / "CURRENT").exists() and any(path.glob("*.sst")):
            # RocksDB would take it for a new store, and delete the rest.
            raise StoreDamaged(f"{path}: the file CURRENT is gone")
        try:
            self._db = Rdict(str(path), tuned(self._options, cache))
        except Exception as error:
            raise self._meaning(error) from error
        self._write_options = WriteOptions()
        # A property, which rocksdict's stub takes for a method.
        setattr(self._write_options, "disable_wal", True)  # noqa: B010
        self._db.set_write_options(self._write_options)
        self.unflushed = 0
        self._flushed_at = clock()
        try:
            self._check(header)
            self._filter = self._filtered(on_keys)
        except BaseException:
            self._db.close()
            raise
        progress = self._get([_PROGRESS])[0]
        self.offset: int
        self.now: int
        self.documents: int
        self.offset, self.now, self.documents = _progress.unpack(
            (progress or b"").ljust(_progress.size, b"\0")
        )
        self.coverage = self._covered()

    def _meaning(self, error: Exception) -> Exception:
        """Tell apart what rocksdict raises, which is bare exceptions with RocksDB's text."""
        text = f"{self.path}: {error}"
        return StoreDamaged(text) if "Corruption" in text else OSError(text)

    def _check(self, header: Header) -> None:
        wanted = {"format": FORMAT_VERSION, **header}
        stored = self._get([_HEADER])[0]
        if stored is None:
            if self._get([_PROGRESS])[0] is not None:
                raise StoreDamaged(f"{self.path}: data, but no header")
            first = WriteBatch(raw_mode=True)
            first.put(_HEADER, json.dumps(wanted, sort_keys=True).encode())
            StoredFilter.begin(first, self._options.filter_bytes)
            self._db.write(first, write_opt=self._write_options)
            self._db.flush()
            return
        try:
            found = json.loads(stored)
        except ValueError as error:
            raise StoreDamaged(f"{self.path}: its header can't be read: {error}") from error
        if found == wanted:
            return
        if found.get("format") != FORMAT_VERSION:
            raise HeaderMismatch(
                f"{self.path} has format {found.get('format')}, and this neardup reads"
                f" {FORMAT_VERSION} only: begin with a new index, or run the version that made it"
            )
        differences = [
            f"{name}: it has {found.get(name, 'none')}, the settings say {wanted.get(name, 'none')}"
            for name in sorted(found.keys() | wanted.keys())
            if found.get(name) != wanted.get(name)
        ]
        msg = f"{self.path} was made with other parameters ({'; '.join(differences)})"
        raise HeaderMismatch(msg)

    def _filtered(self, on_keys: Callable[[int, int], None]) -> StoredFilter:
        try:
            return StoredFilter(self._db, self._options.filter_bytes, on_keys)
        except ReadingEnded as error:
            raise StoreDamaged(f"{self.path}: its filter: {error}") from error
        except Exception as error:
            if type(error) is not Exception:  # of ``on_keys``: rocksdict's are bare
                raise
            raise self._meaning(error) from error

    def _covered(self) -> Coverage:
        try:
            return Coverage.decode(self._get([_COVERAGE])[0], self.offset)
        except ValueError as error:
            self._db.close()
            raise StoreDamaged(f"{self.path}: {error}") from error

    def buckets(self, keys: npt.NDArray[np.void]) -> list[bytes | None]:
        """Look up buckets by their keys, V9[n]; sorted ones are found fastest."""
        asked = np.flatnonzero(self._filter.may_hold(keys))
        found: list[bytes | None] = [None] * len(keys)
        for place, value in zip(asked.tolist(), self._get(keys[asked].tolist()), strict=True):
            found[place] = value
        return found

    def records(self, sequences: Sequence[int]) -> list[bytes | None]:
        """Look up document records by sequence number."""
        pack = _sequence.pack
        return self._get([_RECORDS + pack(s) for s in sequences])

    def _get(self, keys: list[bytes]) -> list[bytes | None]:
        try:
            return cast("list[bytes | None]", self._db.get(cast("Any", keys)))
        except Exception as error:
            raise self._meaning(error) from error

    def batch(self) -> StoreBatch:
        """Begin a write."""
        return StoreBatch()

    def write(
        self,
        batch: StoreBatch,
        *,
        offset: int,
        now: int,
        documents: int,
        coverage: Coverage | None = None,
    ) -> None:
        """Apply a batch and the offset that it reaches, together or not at all.

        Without a ``coverage``, that of the store stays as it is.
        """
        total = self.documents + documents
        covered = self.coverage if coverage is None else coverage
        with probing(self._probe, "write"):
            batch.writes.put(_COVERAGE, covered.encode(offset))
            batch.writes.put(_PROGRESS, _progress.pack(offset, now, total))
            self._filter.add(batch.writes, batch.buckets)
            self._wait_for_room()
            try:
                self._db.write(batch.writes, write_opt=self._write_options)
            except Exception as error:
                raise self._meaning(error) from error
            self.offset = offset
            self.now = now
            self.documents = total
            self.coverage = covered
            self.unflushed += documents
            self.flush_if_due()

    def _wait_for_room(self) -> None:
        """Wait while RocksDB falls behind, so that its own brakes are never touched.

        They would hold the write back inside rocksdict, and with it the interpreter's lock:
        every thread of the process would stand.
        """
        number = self._db.property_int_value
        told = self._clock()
        while not number("rocksdb.background-errors"):  # With one, the write says what it is.
            files = int(self._db.property_value("rocksdb.num-files-at-level0") or 0)
            tables = int(number("rocksdb.num-immutable-mem-table") or 0)
            if files < HELD_FROM and tables < UNFLUSHED_TABLES:
                if files >= SLOWED_FROM:
                    self._sleep(_SLOWED_SECONDS)
                return
            self._sleep(_WAIT_SECONDS)
            if self._clock() - told >= _TELL_SECONDS:
                told = self._clock()
                _log.warning(
                    "%s: writes wait for the disk: %d memtables to be flushed, %d files to be"
                    " merged",
                    self.path,
                    tables,
                    files,
                )

    def flush_if_due(self) -> None:
        """Start a flush if enough documents, or seconds, would have to be replayed."""
        if not self.unflushed:
            self._flushed_at = self._clock()
            return
        waited = self._clock() - self._flushed_at
        if self.unflushed >= self._options.flush_documents or waited >= self._options.flush_seconds:
            self.flush(wait=False)

    def flush(self, *, wait: bool = True) -> None:
        """Write out what memory holds. Without waiting, a failure shows in the next write."""
        with probing(self._probe, "flush"):
            try:
                self._db.flush(wait)
            except Exception as error:
                raise self._meaning(error) from error
            self.unflushed = 0
            self._flushed_at = self._clock()

    @property
    def flushing(self) -> bool:
        """Tell whether a flush that nobody waits for is under way."""
        return bool(self._db.property_int_value("rocksdb.num-immutable-mem-table"))

    @property
    def writing(self) -> bool:
        """Tell whether files are written in the background: flushed, or merged."""
        return any(map(self._db.property_int_value, _BACKGROUND))

    def checkpoint(self, path: Path) -> None:
        """Make a store of its own, of this very offset, at a path that doesn't exist yet.

        Flushes; the tables, which never change, are hard links if it is the same file system.
        """
        with probing(self._probe, "checkpoint"):
            # A checkpoint would flush, too, but rocksdict lets no other thread run meanwhile.
            self.flush()
            try:
                Checkpoint(self._db).create_checkpoint(str(path))
            except Exception as error:
                raise self._meaning(error) from error

    def size_bytes(self) -> int:
        """Estimate the size on disk."""
        return int(self._db.property_int_value("rocksdb.total-sst-files-size") or 0)

    def memory_bytes(self) -> int:
        """Give what the write buffers and pinned tables take; the block cache is shared."""
        names = ("rocksdb.cur-size-all-mem-tables", "rocksdb.estimate-table-readers-mem")
        tables = sum(int(self._db.property_int_value(name) or 0) for name in names)
        return tables + self._filter.size_bytes

    def keys_estimate(self) -> int:
        """Estimate how many keys there are."""
        return int(self._db.property_int_value("rocksdb.estimate-num-keys") or 0)

    def items(self) -> dict[bytes, bytes]:
        """Give every bucket, for tests and checks: all of it, in memory."""
        return {
            key: value
            for key, value in self._db.items()
            if isinstance(key, bytes) and key[0] < BUCKETS_BELOW
        }

    def close(self, *, flush: bool = True) -> None:
        """Close.

        Without ``flush`` the store is given up: what RocksDB can't write any more is logged,
        and left to the log that the store is made from.
        """
        with probing(self._probe, "close"):
            try:
                self._db.close()  # flushes by itself
            except Exception as error:
                if flush:
                    raise self._meaning(error) from error
                _log.info("closed %s: %s", self.path, error)
            self._probe.closed(self)


class StoreBatch:
    """Writes that are applied together."""

    def __init__(self) -> None:
        """Begin empty."""
        self.writes = WriteBatch(raw_mode=True)
        self.buckets: list[npt.NDArray[np.void]] = []

    def put_buckets(self, keys: npt.NDArray[np.void], values: Sequence[bytes]) -> None:
        """Set buckets, by their keys, V9[n]."""
        self.buckets.append(keys)
        self._put(keys.tolist(), values)

    def _put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        put = self.writes.put
        for key, value in zip(keys, values, strict=True):
            put(key, value)

    def put_records(self, sequences: npt.NDArray[np.uint64], records: Sequence[bytes]) -> None:
        """Set document records."""
        keys = np.empty((len(sequences), 9), np.uint8)
        keys[:, 0] = _RECORDS[0]
        keys[:, 1:] = sequences.astype(">u8").view(np.uint8).reshape(-1, 8)
        self._put(keys.view("V9").reshape(-1).tolist(), records)


def aside_of(path: Path) -> Path:
    """Name where a store goes that is put aside."""
    return path.with_name(path.name + ".aside")


def put_aside(path: Path, why: str) -> Path:
    """Move a store out of the way, in place of an earlier one put aside; say so."""
    aside = aside_of(path)
    shutil.rmtree(aside, ignore_errors=True)
    path.rename(aside)
    _log.warning("put the index %s aside as %s: %s; it is rebuilt", path, aside, why)
    return aside
