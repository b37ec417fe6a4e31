"""How the RocksDB under a shard is set up, and where its writes have to wait."""

from __future__ import annotations

from dataclasses import dataclass

from rocksdict import BlockBasedOptions, Cache, Options

__all__ = ["HELD_FROM", "SLOWED_FROM", "UNFLUSHED_TABLES", "StoreOptions", "tuned"]

_MERGED_FLUSHES = 32
SLOWED_FROM = 2 * _MERGED_FLUSHES
HELD_FROM = 3 * _MERGED_FLUSHES
"""Files at level 0 with which a write waits a little, and with which it waits for fewer."""
UNFLUSHED_TABLES = 2
"""Full memtables with which a write waits for fewer: it may fill another, and a flush one more."""
_NEVER = 1 << 30


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What a shard's RocksDB may use. ``cache`` is shared by all shards of a worker."""

    write_buffer_bytes: int = 32 << 20
    flush_documents: int = 10_000
    flush_seconds: float = 60.0
    max_open_files: int = 256
    filter_bytes: int = 16 << 20


def tuned(options: StoreOptions, cache: Cache | None) -> Options:
    """Tune for point lookups of mostly absent keys, with memory bounded by the cache."""
    made = Options(raw_mode=True)
    made.create_if_missing(True)  # noqa: FBT003 -- rocksdict's signature, here and below
    made.set_atomic_flush(True)
    made.set_write_buffer_size(options.write_buffer_bytes)
    # RocksDB brakes writes by these three; `BandStore._wait_for_room` does it before.
    made.set_max_write_buffer_number(UNFLUSHED_TABLES + 3)
    made.set_soft_pending_compaction_bytes_limit(0)
    made.set_hard_pending_compaction_bytes_limit(0)
    made.set_level_zero_slowdown_writes_trigger(_NEVER)
    made.set_level_zero_stop_writes_trigger(_NEVER)
    # Flushes are small, so that little is replayed after a crash. To be merged in larger lots
    # they wait for longer, which nobody feels: nearly every look-up is of an absent bucket.
    made.set_level_zero_file_num_compaction_trigger(_MERGED_FLUSHES)
    # A memtable of hash buckets halves the cost of a write, and the flush, which has to sort
    # it, costs twice what that saves. A Bloom filter of a memtable's keys costs a third of the
    # write; absent buckets are known without it.
    made.set_allow_concurrent_memtable_write(False)
    made.set_max_open_files(options.max_open_files)
    made.set_keep_log_file_num(3)
    made.set_max_log_file_size(4 << 20)
    made.set_max_background_jobs(2)
    made.set_level_compaction_dynamic_level_bytes(True)
    tables = BlockBasedOptions()
    if cache is not None:
        tables.set_block_cache(cache)
    tables.set_bloom_filter(10, False)  # noqa: FBT003
    tables.set_cache_index_and_filter_blocks(True)
    tables.set_pin_l0_filter_and_index_blocks_in_cache(True)
    tables.set_block_size(8 << 10)
    tables.set_format_version(5)
    made.set_block_based_table_factory(tables)
    return made
