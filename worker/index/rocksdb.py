"""A shard's RocksDB: its options, the limits at which writes wait, and complete reads of ranges."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from rocksdict import BlockBasedOptions, DBCompressionType, Options, Rdict

from worker.index.errors import StoreDamaged
from worker.index.keyspace import Range
from worker.index.memory import StoreMemory
from worker.untrusted import NOT_READ

_log = logging.getLogger(__name__)

_MERGED_FLUSHES = 32
SLOWED_FROM = 2 * _MERGED_FLUSHES
HELD_FROM = 3 * _MERGED_FLUSHES
"""Files at level 0 from which a write is delayed, and from which it waits until there are fewer."""
UNFLUSHED_TABLES = 2
"""Full memtables at which a write waits until there are fewer. The write may fill another, and a
flush one more."""
_ARENA_BLOCK = 128 << 10
"""What a memtable grows by. With RocksDB's default of up to 1 MiB, the nearly empty ones of many
shards would fill the limit that they share, and every write would flush."""
_BLOCK = 2 << 10
"""A block of RocksDB is read whole, from the file and once more into memory, so it has one page of
records, or a few grown buckets. What is read is seldom near what was read before."""
_ONE_PAGE = 1 << 10
"""A block that has so much begins no other page of a run."""
_RESTARTS = 16
"""Keys of an index's blocks that are kept as differences: the index is then a third as large."""
_NEVER = 1 << 30
_MODE_FILE = "rocksdict-config.json"
_MODE = {"raw_mode": True, "prefix_extractors": {}}
_MODE_BYTES = 4 << 10
_WAIT_SECONDS = 0.005
_SLOWED_SECONDS = 0.05
_LOG_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The resources of a shard's RocksDB. `StoreMemory` has what all shards share.

    ``run_documents`` is the size of the memtable of a new store. The space of entries is given back
    once they are older than ``window_ms``, which must be that of the rules. What was forgotten
    leaves the files within ``erasure_seconds``.
    """

    write_buffer_bytes: int = 32 << 20
    flush_documents: int = 10_000
    flush_seconds: float = 60.0
    max_open_files: int = 256
    run_documents: int = 1 << 16
    window_ms: int | None = None
    erasure_seconds: float = 86_400.0


def tuned(options: StoreOptions, memory: StoreMemory | None) -> Options:
    """Return options for point look-ups of mostly absent keys, in bounded memory."""
    made = Options(raw_mode=True)
    made.create_if_missing(True)  # noqa: FBT003 -- rocksdict's signature, here and below
    made.set_atomic_flush(True)
    made.set_write_buffer_size(options.write_buffer_bytes)
    made.set_arena_block_size(_ARENA_BLOCK)
    # RocksDB would stall writes at these limits; `wait_for_room` waits before they are reached.
    made.set_max_write_buffer_number(UNFLUSHED_TABLES + 3)
    made.set_soft_pending_compaction_bytes_limit(0)
    made.set_hard_pending_compaction_bytes_limit(0)
    made.set_level_zero_slowdown_writes_trigger(_NEVER)
    made.set_level_zero_stop_writes_trigger(_NEVER)
    # Flushes are small, so that little is replayed after a crash. They are compacted late, many at
    # a time. That costs little, because nearly every look-up is of an absent bucket.
    made.set_level_zero_file_num_compaction_trigger(_MERGED_FLUSHES)
    # Most of what a flush writes is cells of the memtable. Packed, they don't become smaller, and
    # they are gone before the flushes are compacted.
    made.set_compression_per_level([DBCompressionType.none(), DBCompressionType.snappy()])
    # A hash memtable would halve the cost of a write, but its flush has to sort it, which costs
    # twice what that saves. A Bloom filter of a memtable's keys would cost a third of a write, and
    # `Runs` already detects absent buckets.
    made.set_allow_concurrent_memtable_write(False)
    made.set_max_open_files(options.max_open_files)
    made.set_keep_log_file_num(3)
    made.set_max_log_file_size(4 << 20)
    made.set_max_background_jobs(2)
    made.set_level_compaction_dynamic_level_bytes(True)
    tables = _tables(_BLOCK)
    if memory is not None:
        tables.set_block_cache(memory.cache)
        made.set_write_buffer_manager(memory.buffers)
    tables.set_bloom_filter(10, False)  # noqa: FBT003 -- see above
    made.set_block_based_table_factory(tables)
    return made


def for_tables() -> Options:
    """Return options for the tables of runs.

    Their pages don't become smaller packed, and are too many for any to be read twice soon.
    """
    made = Options(raw_mode=True)
    made.set_compression_type(DBCompressionType.none())
    made.set_arena_block_size(_ARENA_BLOCK)
    tables = _tables(_ONE_PAGE)
    tables.disable_cache()
    made.set_block_based_table_factory(tables)
    return made


def _tables(block: int) -> BlockBasedOptions:
    made = BlockBasedOptions()
    # In the cache, they would be looked up for each table that a key may be in. They take 2 bytes a
    # document; `BandStore.held_bytes` counts them.
    made.set_cache_index_and_filter_blocks(False)
    made.set_block_size(block)
    made.set_index_block_restart_interval(_RESTARTS)
    made.set_format_version(5)
    return made


def opened(path: Path, options: Options, runs: Iterable[str], of_runs: Options) -> Rdict:
    """Open or create a RocksDB with these options; ``of_runs`` are those of the families ``runs``.

    Of one that exists, rocksdict takes a column family's options from its files, unless they are
    given by the family's name. The block cache is not in the files.
    """
    return Rdict(str(path), options, {"default": options, **dict.fromkeys(runs, of_runs)})


def check_mode(path: Path) -> None:
    """Check that a store is one of plain bytes, which the file beside it says.

    rocksdict believes that file more than the options it is given, and a store that is not of
    plain bytes may hold pickled objects. A store without the file is opened as one of bytes.

    Raises:
        StoreDamaged: the file says something else, or isn't what rocksdict writes.
    """
    file = path / _MODE_FILE
    try:
        with file.open("rb") as opened:
            found = json.loads(opened.read(_MODE_BYTES))
    except FileNotFoundError:
        return
    except NOT_READ as error:
        raise StoreDamaged(f"{file}: is not what rocksdict writes: {error}") from error
    if found != _MODE:
        raise StoreDamaged(f"{file}: is not that of a store of plain bytes")


def wait_for_room(
    db: Rdict, path: Path, clock: Callable[[], float], sleep: Callable[[float], None]
) -> float:
    """Wait while RocksDB falls behind, so that RocksDB itself never stalls a write.

    Returns for how many seconds it waited.

    A stalled write waits inside rocksdict with the GIL held, which would block every thread of
    the process.
    """
    number = db.property_int_value
    began = logged = clock()
    waited = 0.0
    while not number("rocksdb.background-errors"):  # The write will raise such an error.
        files = int(db.property_value("rocksdb.num-files-at-level0") or 0)
        tables = int(number("rocksdb.num-immutable-mem-table") or 0)
        if files < HELD_FROM and tables < UNFLUSHED_TABLES:
            if files >= SLOWED_FROM:
                sleep(_SLOWED_SECONDS)
                waited = clock() - began
            break
        sleep(_WAIT_SECONDS)
        waited = clock() - began
        if clock() - logged >= _LOG_SECONDS:
            logged = clock()
            _log.warning(
                "%s: writes wait for the disk: %d memtables to flush, %d files to compact",
                path,
                tables,
                files,
            )
    return waited


class ReadingEnded(Exception):
    """A range of a store can't be read to its end."""


def span(db: Rdict, keys: Range) -> Iterator[tuple[bytes, bytes]]:
    """Return the keys and values in a range of keys, in order.

    rocksdict's iterator silently ends at a block that it can't read. The range was read
    completely only if a key past it follows. Every store has one: its header.

    Raises:
        ReadingEnded: no key past the range follows.
    """
    low, high = keys
    pairs = db.items(from_key=low) if low else db.items()
    for key, value in cast("Iterator[tuple[bytes, bytes]]", pairs):
        if key >= high:
            return
        yield key, value
    raise ReadingEnded(f"a block past {low.hex() or 'the start'} can't be read")
