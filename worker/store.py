"""The RocksDB under one index shard: a sorted map, its offset, and a header.

The write-ahead log is off, because the shard's partition of ``bands`` is one. What makes
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
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from rocksdict import BlockBasedOptions, Cache, Options, Rdict, WriteBatch, WriteOptions

__all__ = ["BandStore", "HeaderMismatch", "StoreOptions", "put_aside"]

_log = logging.getLogger(__name__)

FORMAT_VERSION = 1

BUCKETS_BELOW = 0xFE
"""Key prefix: a band's number, below this, then the band key (8 bytes, big-endian)."""
_RECORDS = b"\xfe"
_HEADER = b"\xffheader"
_PROGRESS = b"\xffprogress"
_progress = struct.Struct("<qq")
_sequence = struct.Struct(">Q")

Header = dict[str, str | int | float | bool]


class HeaderMismatch(Exception):  # noqa: N818 -- says what was found
    """The store was made for other parameters, another topic, or by another version."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What a shard's RocksDB may use. ``cache`` is shared by all shards of a worker."""

    write_buffer_bytes: int = 32 << 20
    flush_documents: int = 200_000
    flush_seconds: float = 60.0
    max_open_files: int = 256


class BandStore:
    """One shard's buckets and document records.

    Not thread-safe. ``offset`` is the offset in the shard's partition of ``bands`` from
    which to read on; ``now`` is the running maximum of the log's time, in ms.
    """

    def __init__(
        self,
        path: Path,
        header: Header,
        *,
        cache: Cache | None = None,
        options: StoreOptions | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Open or create.

        Raises:
            HeaderMismatch: it was made with other parameters; the message names them.
            OSError: RocksDB can't open it (the message is RocksDB's own).
        """
        self.path = path
        self._options = options or StoreOptions()
        self._clock = clock
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = Rdict(str(path), _tuned(self._options, cache))
        except Exception as error:
            # rocksdict raises bare exceptions; the caller has to tell this one apart.
            msg = f"{path}: {error}"
            raise OSError(msg) from error
        self._write_options = WriteOptions()
        # A property, which rocksdict's stub takes for a method.
        setattr(self._write_options, "disable_wal", True)  # noqa: B010
        self._db.set_write_options(self._write_options)
        self.unflushed = 0
        self._flushed_at = clock()
        try:
            self._check(header)
        except BaseException:
            self._db.close()
            raise
        progress = self._db.get(_PROGRESS)
        self.offset, self.now = _progress.unpack(progress) if progress else (0, 0)

    def _check(self, header: Header) -> None:
        wanted = {"format": FORMAT_VERSION, **header}
        stored = self._db.get(_HEADER)
        if stored is None:
            if self._db.get(_PROGRESS) is not None:
                msg = f"{self.path}: no header, but data: not an index of neardup, or damaged"
                raise HeaderMismatch(msg)
            self._db.put(_HEADER, json.dumps(wanted, sort_keys=True).encode())
            self._db.flush()
            return
        found = json.loads(stored)
        if found == wanted:
            return
        differences = [
            f"{name}: it has {found.get(name, 'none')}, the settings say {wanted.get(name, 'none')}"
            for name in sorted(found.keys() | wanted.keys())
            if found.get(name) != wanted.get(name)
        ]
        msg = f"{self.path} was made with other parameters ({'; '.join(differences)})"
        raise HeaderMismatch(msg)

    def get(self, keys: list[bytes]) -> list[bytes | None]:
        """Look up buckets; sorted keys are found fastest."""
        return cast("list[bytes | None]", self._db.get(cast("Any", keys)))

    def records(self, sequences: Sequence[int]) -> list[bytes | None]:
        """Look up document records by sequence number."""
        pack = _sequence.pack
        return self.get([_RECORDS + pack(s) for s in sequences])

    def batch(self) -> StoreBatch:
        """Begin a write."""
        return StoreBatch()

    def write(self, batch: StoreBatch, *, offset: int, now: int, documents: int) -> None:
        """Apply a batch and the offset that it reaches, together or not at all."""
        batch.writes.put(_PROGRESS, _progress.pack(offset, now))
        self._db.write(batch.writes, write_opt=self._write_options)
        self.offset = offset
        self.now = now
        self.unflushed += documents
        self.flush_if_due()

    def flush_if_due(self) -> None:
        """Start a flush if enough documents, or seconds, would have to be replayed."""
        if not self.unflushed:
            self._flushed_at = self._clock()
            return
        waited = self._clock() - self._flushed_at
        if self.unflushed >= self._options.flush_documents or waited >= self._options.flush_seconds:
            self._db.flush(wait=False)
            self.unflushed = 0
            self._flushed_at = self._clock()

    def size_bytes(self) -> int:
        """Estimate the size on disk."""
        return int(self._db.property_int_value("rocksdb.total-sst-files-size") or 0)

    def memory_bytes(self) -> int:
        """Give what the write buffers and pinned tables take; the block cache is shared."""
        names = ("rocksdb.cur-size-all-mem-tables", "rocksdb.estimate-table-readers-mem")
        return sum(int(self._db.property_int_value(name) or 0) for name in names)

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
        """Close; without ``flush``, what is in the write buffers is left to the log."""
        if flush:
            self._db.flush()
        self._db.close()


class StoreBatch:
    """Writes that are applied together."""

    def __init__(self) -> None:
        """Begin empty."""
        self.writes = WriteBatch(raw_mode=True)

    def put_buckets(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Set buckets."""
        put = self.writes.put
        for key, value in zip(keys, values, strict=True):
            put(key, value)

    def put_records(self, sequences: npt.NDArray[np.uint64], records: Sequence[bytes]) -> None:
        """Set document records."""
        keys = np.empty((len(sequences), 9), np.uint8)
        keys[:, 0] = _RECORDS[0]
        keys[:, 1:] = sequences.astype(">u8").view(np.uint8).reshape(-1, 8)
        self.put_buckets(keys.view("V9").reshape(-1).tolist(), records)


def put_aside(path: Path, why: str) -> Path:
    """Move a store out of the way, in place of an earlier one put aside; say so."""
    aside = path.with_name(path.name + ".aside")
    shutil.rmtree(aside, ignore_errors=True)
    path.rename(aside)
    _log.warning("put the index %s aside as %s: %s; it is rebuilt from the log", path, aside, why)
    return aside


def _tuned(options: StoreOptions, cache: Cache | None) -> Any:  # noqa: ANN401 -- untyped library
    """Tune for point lookups of mostly absent keys, with memory bounded by the cache."""
    tuned = Options(raw_mode=True)
    tuned.create_if_missing(True)  # noqa: FBT003 -- rocksdict's signature, here and below
    tuned.set_atomic_flush(True)
    tuned.set_write_buffer_size(options.write_buffer_bytes)
    tuned.set_max_write_buffer_number(3)
    tuned.set_memtable_whole_key_filtering(True)
    tuned.set_memtable_prefix_bloom_ratio(0.1)
    tuned.set_max_open_files(options.max_open_files)
    tuned.set_keep_log_file_num(3)
    tuned.set_max_log_file_size(4 << 20)
    tuned.set_max_background_jobs(2)
    tuned.set_level_compaction_dynamic_level_bytes(True)
    tables = BlockBasedOptions()
    if cache is not None:
        tables.set_block_cache(cache)
    tables.set_bloom_filter(10, False)  # noqa: FBT003
    tables.set_cache_index_and_filter_blocks(True)
    tables.set_pin_l0_filter_and_index_blocks_in_cache(True)
    tables.set_block_size(8 << 10)
    tables.set_format_version(5)
    tuned.set_block_based_table_factory(tables)
    return tuned
