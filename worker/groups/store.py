"""The store of an application's groups, beside those of its shards.

Each shard is judged by itself, so its matches wait here until those of all shards have come for a
frame. Then the frame's documents join their groups. How far each shard has been noted is in the
same write as all that follows from it.

A shard's matches are noted, durably, before the shard goes past them. So whatever a crash leaves,
no shard is further than was noted of it, and what is noted again is passed over. Only a store of
groups that was lost is behind. Then all shards are read again, or the groups begin anew; see
`worker.serve.following`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Final, TypeVar

import msgspec
from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options, WriteBatch

from lsh.index import BucketRules
from worker.closing import Closing
from worker.groups.clock import IndexClock
from worker.groups.joining import Joining, Kept
from worker.groups.matches import Found, merged
from worker.groups.reading import GroupsReader
from worker.groups.rows import HEADER, PENDING, PROGRESS, Changes, Progress, key, number
from worker.index.errors import StoreDamaged
from worker.index.keyspace import StoreHeader
from worker.index.rocksdb import check_mode, opened, wait_for_room
from worker.probe import UNWATCHED, Probe, probing
from worker.settings.memory import GROUPS_BUFFER, GROUPS_CACHE
from worker.stages.order import Placed

T = TypeVar("T")

_FORMAT = 2
_OPEN_FILES = 128
_MERGED_FLUSHES = 4
_ERASURE_SHARE = 0.5
"""Of the time within which what was forgotten must be gone, how much passes before it is."""
_LOST = "Corruption", "No such file"
_END: Final = b"\xff"

_found = msgspec.msgpack.Decoder(Found)
_packed = msgspec.msgpack.encode


class GroupsUnusable(Exception):
    """The groups can't be read or written; the message says why.

    ``lost``: they are damaged, or not those of the settings, and must be made anew.
    """

    def __init__(self, why: object, *, lost: bool = False) -> None:
        """Say why."""
        super().__init__(str(why))
        self.lost = lost


@dataclass(frozen=True, slots=True)
class Terms:
    """By what groups are made: the index's rules, for how long members are kept, and the rest."""

    rules: BucketRules
    kept: Kept
    header: StoreHeader
    erasure_seconds: float


class GroupStore(Closing):
    """The groups. Not thread-safe; `reader` is for other threads.

    Methods that read or write raise `GroupsUnusable`. The store is then closed, and opened again.
    """

    def __init__(
        self,
        path: Path,
        shards: int,
        terms: Terms,
        *,
        clock: Callable[[], float] = monotonic,
        probe: Probe = UNWATCHED,
    ) -> None:
        """Open or create the store. One that was made by other terms is made anew."""
        self.path = path
        self._terms = terms
        self._clock = clock
        self._probe = probe
        self._erase_at: float | None = None
        header = json.dumps({"format": _FORMAT, **terms.header}, sort_keys=True).encode()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            check_mode(path)
            options = _options()
            self._db = opened(path, options, (), options)
        except Exception as error:
            raise self._unusable(error) from error
        try:
            self._begin(header, shards)
        except BaseException:
            self._db.close()
            raise
        probe.opened(self)

    def _begin(self, header: bytes, shards: int) -> None:
        try:
            found, packed = self._db.get(HEADER), self._db.get(PROGRESS)
            self.progress = Progress.unpacked(packed) if packed else Progress([0] * shards)
            self._index_clock = IndexClock(self._terms.rules, self.progress.clock)
        except Exception as error:
            raise self._unusable(error) from error
        if found is None and packed is None:
            first = WriteBatch(raw_mode=True)
            first.put(HEADER, header)
            self._write(first, self.progress)
        elif found != header:
            raise GroupsUnusable(f"{self.path} was made with other settings", lost=True)
        if self.progress.erasing:
            self._erase_at = self._clock()  # It isn't known for how long it has waited.

    def _unusable(self, error: Exception) -> GroupsUnusable:
        """Return our error for rocksdict's, which are bare exceptions with RocksDB's text."""
        found = isinstance(error, ValueError | StoreDamaged)
        lost = found or any(what in str(error) for what in _LOST)
        return GroupsUnusable(f"{self.path}: {error}", lost=lost)

    def note(self, shard: int, frames: Sequence[Placed], matches: Sequence[Found]) -> None:
        """Note what a shard has found for each of some frames, which it is about to go past.

        The documents of frames that have been noted in all shards join their groups.
        """
        progress = self.progress
        reached = [*progress.reached]
        own = {
            placed.offset: found
            for placed, found in zip(frames, matches, strict=True)
            if placed.offset >= reached[shard]
        }
        if not own:
            return
        reached[shard] = frames[-1].offset + 1
        complete, most = min(reached), self._terms.rules.max_matches
        batch = WriteBatch(raw_mode=True)
        changes = Changes(self._db)
        clock = IndexClock(self._terms.rules, self._index_clock.packed())
        joining = Joining(changes, clock, self._terms.kept, self._terms.rules.same_id)
        try:
            for placed in frames:
                found = own.get(placed.offset)
                if found is None:
                    continue
                if placed.offset < complete:
                    others = self._waiting(changes, placed.offset, shard)
                    joining.apply(placed, merged([found, *others], most))
                elif found:
                    changes.put(PENDING + key(placed.offset), key(shard), _packed(found))
            more = joining.finish()
            changes.write(batch)
        except Exception as error:
            raise self._unusable(error) from error
        if joining.forgot and self._erase_at is None:
            self._erase_at = self._clock() + _ERASURE_SHARE * self._terms.erasure_seconds
        after = msgspec.structs.replace(
            progress,
            reached=reached,
            clock=clock.packed(),
            groups=progress.groups + more,
            erasing=self._erase_at is not None,
        )
        self._write(batch, after)
        self._index_clock = clock

    def _waiting(self, changes: Changes, offset: int, shard: int) -> list[Found]:
        """Take what the other shards have noted of a frame."""
        part = PENDING + key(offset)
        rows = [row for row in changes.of(part) if number(row[0]) != shard]
        for rest, _ in rows:
            changes.put(part, rest, None)
        return [_found.decode(row) for _, row in rows]

    def pass_over(self, shard: int, offset: int) -> None:
        """Note that a shard is about to go past something that has no documents."""
        if offset > self.progress.reached[shard]:
            reached = [*self.progress.reached]
            reached[shard] = offset
            self._write(
                WriteBatch(raw_mode=True), msgspec.structs.replace(self.progress, reached=reached)
            )

    def begin_at(self, offset: int) -> None:
        """Forget all groups, and begin at an offset: nothing before it can be judged any more."""
        batch = WriteBatch(raw_mode=True)
        batch.delete_range(PENDING, _END)
        self._index_clock = IndexClock(self._terms.rules)
        self._write(batch, Progress([offset] * len(self.progress.reached), begun=offset))

    def _write(self, batch: WriteBatch, progress: Progress) -> None:
        """Write durably. Other threads run while the disk is waited for."""
        batch.put(PROGRESS, progress.packed())
        with probing(self._probe, "write"):
            try:
                wait_for_room(self._db, self.path, self._clock, sleep)
                self._db.write(batch)
                self._db.flush_wal(sync=True)
            except Exception as error:
                raise self._unusable(error) from error
            self.progress = progress

    def erase_if_due(self) -> None:
        """Remove from the files what was forgotten, if it is time to."""
        if self._erase_at is None or self._clock() < self._erase_at:
            return
        with probing(self._probe, "flush"):
            try:
                self._db.flush()
                self._db.compact_range(None, None)
            except Exception as error:
                raise self._unusable(error) from error
        self._erase_at = None
        self._write(
            WriteBatch(raw_mode=True), msgspec.structs.replace(self.progress, erasing=False)
        )

    def read(self, ask: Callable[[GroupsReader], T]) -> T:
        """Return what ``ask`` returns of the groups as they are now. Any thread may call.

        Raises:
            GroupsUnusable: they can't be read.
        """
        try:
            return ask(GroupsReader(self._db.snapshot()))
        except Exception as error:
            if type(error) is not Exception and not isinstance(error, StoreDamaged):
                raise  # ``ask`` has its own. rocksdict's are bare.
            raise self._unusable(error) from error

    @property
    def writing(self) -> bool:
        """Return whether files are being written in the background."""
        busy = "mem-table-flush-pending", "num-running-flushes", "num-running-compactions"
        return any(self._db.property_int_value(f"rocksdb.{name}") for name in busy)

    def close(self) -> None:
        """Close the store."""
        self._db.close()
        self._probe.closed(self)


def _options() -> Options:
    """Return options for short rows that are changed often, in bounded memory."""
    made = Options(raw_mode=True)
    made.create_if_missing(True)  # noqa: FBT003 -- rocksdict's signature, here and below
    made.set_write_buffer_size(GROUPS_BUFFER)
    made.set_level_zero_file_num_compaction_trigger(_MERGED_FLUSHES)
    # `wait_for_room` waits before RocksDB would stall a write, which blocks every thread.
    made.set_max_write_buffer_number(5)
    made.set_soft_pending_compaction_bytes_limit(0)
    made.set_hard_pending_compaction_bytes_limit(0)
    made.set_level_zero_slowdown_writes_trigger(1 << 30)
    made.set_level_zero_stop_writes_trigger(1 << 30)
    made.set_level_compaction_dynamic_level_bytes(True)
    made.set_compression_type(DBCompressionType.lz4())
    made.set_max_open_files(_OPEN_FILES)
    made.set_keep_log_file_num(3)
    made.set_max_log_file_size(4 << 20)
    tables = BlockBasedOptions()
    tables.set_block_cache(Cache(GROUPS_CACHE))
    # With their filters, the tables of any number of groups take no more than the cache.
    tables.set_cache_index_and_filter_blocks(True)
    tables.set_pin_l0_filter_and_index_blocks_in_cache(True)
    tables.set_bloom_filter(10, False)  # noqa: FBT003 -- rocksdict's signature
    tables.set_format_version(5)
    made.set_block_based_table_factory(tables)
    return made
