"""Keeps shards of other workers warm: reads their log, but never past the group's commit."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic

from worker.bus import (
    BusError,
    LogReader,
    LogTruncated,
    OffsetOutOfRange,
    PartitionUnreadable,
    Record,
    TopicPartition,
    TopicRecreated,
)
from worker.index.directory import ShardDirectories
from worker.index.errors import StoreDamaged
from worker.index.recovery import LogRange, Recovery
from worker.index.store import BandStore
from worker.index.warm_shards import Warm, WarmShard, WarmShards
from worker.stages.order import FrameOutOfPlace

_log = logging.getLogger(__name__)

_ASK_SECONDS = 1.0
_RETRY_SECONDS = 30.0
_END_SECONDS = 5.0
_RECORDS = 8
_BYTES = 8 << 20
"""The limits of one read: a shard is handed over once these frames are applied."""
_HELD = 64
_HELD_BYTES = 16 << 20
"""The most frames read ahead of the group. Reading pauses above it until the group catches up."""


class Standby:
    """Keeps shards warm in a thread of its own; the stage takes shards from it and gives them back.

    If a shard can't be kept warm, the reason is logged and it is retried later. Nothing waits for
    a standby; see `WarmShards`.
    """

    def __init__(  # noqa: PLR0913 -- the stage's business
        self,
        partitions: Iterable[TopicPartition],
        reader: Callable[[], LogReader],
        recovery: Recovery,
        directories: ShardDirectories,
        apply: Callable[[int, BandStore, list[Record]], None],
        *,
        background: bool,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take the shards to keep warm. Nothing starts before the first `hand_over`.

        ``apply`` judges records and applies their changes to a store, like a replay.
        """
        self._shards = WarmShards(partitions, recovery, background=background)
        self._connect = reader
        self._recovery = recovery
        self._directories = directories
        self._apply = apply
        self._background = background
        self._clock = clock
        self._committed: dict[TopicPartition, int] = {}
        self._asked_at: float | None = None
        self._reader: LogReader | None = None
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._error: BaseException | None = None

    def hand_over(self, owned: Mapping[TopicPartition, LogRange]) -> dict[TopicPartition, Warm]:
        """Hand over the warm ones of these shards, which the stage owns now; keep all others warm.

        A shard whose store is in use is returned as an `Opening`, which is done when the use ends.

        Raises:
            BaseException: the error that ended the thread.
        """
        if self._error is not None:
            raise self._error
        taken = self._shards.hand_over(owned)
        if self._background and self._thread is None and self._shards.wanted:
            self._thread = threading.Thread(target=self._run, name="standby", daemon=True)
            self._thread.start()
        return taken

    def take(self, partition: TopicPartition, warm: Warm) -> bool:
        """Take a shard that the stage has lost; return False if it isn't wanted."""
        return self._shards.take(partition, warm)

    def lag(self) -> Mapping[int, int]:
        """Return by shard how many records the store is behind its group.

        Shards are left out until the group's offset is known.
        """
        committed = self._committed
        lags = {}
        for partition, shard in self._shards.all():
            store = shard.store
            if partition in committed:
                offset = store.offset if store is not None else 0
                lags[partition.partition] = committed[partition] - offset
        return lags

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self.step(0.5)
        except BaseException as error:  # noqa: BLE001 -- carried to the stage, which raises it
            self._error = error
        finally:
            self._disconnect()

    def step(self, timeout: float) -> None:
        """Fetch the group's offsets, read records, and apply those that the group has committed."""
        try:
            if self._reader is None:
                self._reader = self._connect()
            records = self._read(self._reader, timeout)
        except (TopicRecreated, LogTruncated):
            raise  # The stage gets the same error.
        except BusError as error:
            _log.warning("standby: %s; retrying", error)
            self._disconnect()
            self._ending.wait(_ASK_SECONDS if self._background else 0)
            records = ()
        by_partition: dict[TopicPartition, list[Record]] = {}
        for record in records:
            place = TopicPartition(record.topic, record.partition)
            by_partition.setdefault(place, []).append(record)
        for partition, _ in self._shards.all():
            self._read_on(partition, by_partition.get(partition, []))

    def _read(self, reader: LogReader, timeout: float) -> Sequence[Record]:
        self._ask(reader)
        self._follow(reader)
        try:
            return reader.read(_RECORDS, _BYTES, timeout)
        except OffsetOutOfRange as error:
            reader.stop(error.partition)
            self._reset(error.partition, str(error))
        except PartitionUnreadable as error:
            reader.stop(error.partition)
            self._let_rest(error.partition, str(error))
        return ()

    def _ask(self, reader: LogReader) -> None:
        now = self._clock()
        if self._background and self._asked_at is not None and now - self._asked_at < _ASK_SECONDS:
            return
        self._asked_at = now
        found = reader.committed(self._shards.wanted)
        self._committed = {place: offset for place, offset in found.items() if offset is not None}

    def _follow(self, reader: LogReader) -> None:
        """Open stores, and start and stop reading, to match the shards that are to be warm."""
        for partition in self._shards.wanted:
            shard = self._shards.get(partition)
            committed = self._committed.get(partition)
            if shard is None or self._clock() < shard.not_before:
                reader.stop(partition)
                continue
            if committed is None:
                continue
            if shard.store is None and shard.opening is None:
                log = self._recovery.log_range(reader.watermarks(partition), committed)
                self._shards.open(partition, log)
            why = self._shards.settle(partition, self._clock() + _RETRY_SECONDS)
            if why is not None:
                _warn(partition, why)
            # The stage may take the shard at any time. Records read for it until the next step
            # are then dropped.
            store = shard.store
            if store is None or self._shards.get(partition) is not shard:
                reader.stop(partition)
            elif len(shard.held) > _HELD or _size(shard.held) > _HELD_BYTES:
                reader.stop(partition)
                shard.stop_reading()
            elif not shard.reading and store.offset < committed:
                log = self._recovery.log_range(reader.watermarks(partition), committed)
                reader.start(partition, log.start(store.offset))
                shard.reading = True

    def _read_on(self, partition: TopicPartition, records: list[Record]) -> None:
        """Apply records to a shard's store, and do what is due there, also if it reads nothing."""
        with self._shards.at_work(partition) as shard:
            if shard is None or shard.store is None:
                return
            if not shard.reading:  # They were read for a store that it had before.
                records = []
            committed = self._committed.get(partition, 0)
            shard.held += records
            ready = [one for one in shard.held if one.offset < committed]
            shard.held = shard.held[len(ready) :]
            try:
                if ready:
                    self._apply(partition.partition, shard.store, ready)
                shard.store.flush_if_due()
                shard.store.purge_if_due()
            except StoreDamaged as error:
                offset = shard.store.offset
                self._recovery.damaged(partition.partition, offset, str(error))
                self._give_up(partition, shard, str(error), aside=True)
            except FrameOutOfPlace as error:
                self._give_up(partition, shard, str(error), aside=True)
            except OSError as error:
                self._give_up(partition, shard, str(error))

    def _reset(self, partition: TopicPartition, why: str) -> None:
        """Put a store aside whose log was trimmed past it, and open another at once."""
        with self._shards.at_work(partition) as shard:
            if shard is not None and shard.reading:
                self._give_up(partition, shard, why, aside=True)
                shard.not_before = 0.0

    def _let_rest(self, partition: TopicPartition, why: str) -> None:
        """Pause a shard for a while: read nothing for it, and leave its store as it is."""
        shard = self._shards.get(partition)
        if shard is not None and shard.reading:
            _warn(partition, why)
            shard.stop_reading()
            shard.not_before = self._clock() + _RETRY_SECONDS

    def _give_up(
        self, partition: TopicPartition, shard: WarmShard, why: str, *, aside: bool = False
    ) -> None:
        """Close a store that can't be kept warm; with ``aside``, put it aside as unusable."""
        _warn(partition, why)
        store, shard.store = shard.store, None
        shard.stop_reading()
        shard.not_before = self._clock() + _RETRY_SECONDS
        if store is not None:
            store.close(flush=False)
        if aside:
            self._directories.put_aside(partition.partition, why)

    def _disconnect(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        for _, shard in self._shards.all():
            shard.stop_reading()

    def close(self) -> None:
        """End the thread and close the warm stores, within a bounded time.

        A store that is in use is closed by the thread.
        """
        self._ending.set()
        self._shards.end()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)
        else:
            self._disconnect()
        self._shards.close()


def _size(records: list[Record]) -> int:
    return sum(len(record.value or b"") for record in records)


def _warn(partition: TopicPartition, why: str) -> None:
    _log.warning("shard %d can't be kept warm: %s", partition.partition, why)
