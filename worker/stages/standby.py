"""Shards of other workers, kept warm: read along, never past what their group has committed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import monotonic

from worker.bus import BusError, OffsetOutOfRange, Reader, Record, TopicPartition
from worker.snapshots import LogRange, Recovery, Unrecoverable
from worker.stages.opening import Opening
from worker.store import BandStore, HeaderMismatch, StoreDamaged

__all__ = ["Standby", "Warm"]

_log = logging.getLogger(__name__)

_ASK_SECONDS = 1.0
_RETRY_SECONDS = 30.0
_END_SECONDS = 5.0
_RECORDS = 8
"""Frames at a time: the stage waits for no more when it takes a shard over."""
_HELD = 64
"""Frames read ahead of the group; with more, reading rests until the group has come on."""

Warm = BandStore | Opening
"""A shard as it passes between the stage and its standby: open, or on its way."""


@dataclass(slots=True)
class _Shard:
    opening: Opening | None = None
    store: BandStore | None = None
    held: list[Record] = field(default_factory=list)
    reading: bool = False
    not_before: float = 0.0


class Standby:
    """Keeps shards warm in a thread of its own; the stage takes them from it, and gives them back.

    Whatever keeps a shard from being kept warm is a warning, and tried again: nobody waits
    for it.
    """

    def __init__(  # noqa: PLR0913 -- the stage's business
        self,
        partitions: Iterable[TopicPartition],
        reader: Callable[[], Reader],
        recovery: Recovery,
        put_aside: Callable[[int, str], None],
        apply: Callable[[TopicPartition, BandStore, list[Record]], None],
        *,
        background: bool,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take what to keep warm, and how; nothing begins before the first `hand_over`.

        ``apply`` judges records and writes what they change, as a replay does.
        """
        self._wanted = frozenset(partitions)
        self._connect = reader
        self._recovery = recovery
        self._put_aside = put_aside
        self._apply = apply
        self._background = background
        self._clock = clock
        self._lock = threading.Lock()
        self._shards: dict[TopicPartition, _Shard] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._asked_at: float | None = None
        self._reader: Reader | None = None
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._error: BaseException | None = None

    def hand_over(self, owned: Iterable[TopicPartition]) -> dict[TopicPartition, Warm]:
        """Give what is warm of these shards, which the stage owns now; keep all others warm.

        Raises:
            BaseException: what the thread has died of.
        """
        if self._error is not None:
            raise self._error
        taken: dict[TopicPartition, Warm] = {}
        with self._lock:
            for partition in owned:
                shard = self._shards.pop(partition, None)
                warm = (shard.store or shard.opening) if shard is not None else None
                if warm is not None:
                    taken[partition] = warm
            for partition in self._wanted.difference(owned):
                self._shards.setdefault(partition, _Shard())
        if self._background and self._thread is None and self._wanted:
            self._thread = threading.Thread(target=self._run, name="standby", daemon=True)
            self._thread.start()
        return taken

    def take(self, partition: TopicPartition, warm: Warm) -> bool:
        """Take a shard that the stage has lost; False: it isn't wanted."""
        if partition not in self._wanted or self._ending.is_set():
            return False
        with self._lock:
            is_store = isinstance(warm, BandStore)
            self._shards[partition] = (
                _Shard(store=warm) if is_store else _Shard(opening=warm)  # type: ignore[arg-type]
            )
        return True

    def lag(self) -> Mapping[int, int]:
        """Give, by shard, how many records of those that the group has dealt with are missing."""
        with self._lock:
            return {
                partition.partition: self._committed.get(partition, 0)
                - (shard.store.offset if shard.store is not None else 0)
                for partition, shard in self._shards.items()
            }

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self.step(0.5)
        except BaseException as error:  # noqa: BLE001 -- carried to the stage, which raises it
            self._error = error

    def step(self, timeout: float) -> None:
        """Look how far the group is, read, and apply what it has committed."""
        try:
            if self._reader is None:
                self._reader = self._connect()
            self._ask(self._reader)
            self._follow(self._reader)
            records = self._reader.read(_RECORDS, timeout)
        except OffsetOutOfRange as error:
            self._reset(error.partition, str(error))
            return
        except BusError as error:
            _log.warning("standby: %s; trying again", error)
            self._disconnect()
            self._ending.wait(_ASK_SECONDS if self._background else 0)
            return
        by_partition: dict[TopicPartition, list[Record]] = {}
        for record in records:
            place = TopicPartition(record.topic, record.partition)
            by_partition.setdefault(place, []).append(record)
        for partition in list(self._shards):
            self._read_on(partition, by_partition.get(partition, []))

    def _ask(self, reader: Reader) -> None:
        now = self._clock()
        if self._background and self._asked_at is not None and now - self._asked_at < _ASK_SECONDS:
            return
        self._asked_at = now
        found = reader.committed(self._wanted)
        self._committed = {place: offset for place, offset in found.items() if offset is not None}

    def _follow(self, reader: Reader) -> None:
        """Bring what is read in line with what is to be kept warm."""
        for partition in self._wanted:
            with self._lock:
                shard = self._shards.get(partition)
                committed = self._committed.get(partition)
                idle = shard is not None and shard.store is None and shard.opening is None
            if shard is None:
                reader.stop(partition)
                continue
            if committed is None or self._clock() < shard.not_before:
                continue
            if idle:
                log = LogRange(*reader.watermarks(partition), committed)
                self._open(partition, log)
            self._settle(partition)
            with self._lock:
                store = shard.store
                if store is None or self._shards.get(partition) is not shard:
                    reader.stop(partition)
                elif len(shard.held) > _HELD:
                    reader.stop(partition)
                    shard.reading = False
                    shard.held.clear()
                elif not shard.reading and store.offset < committed:
                    reader.start(partition, store.offset)
                    shard.reading = True

    def _open(self, partition: TopicPartition, log: LogRange) -> None:
        with self._lock:
            shard = self._shards.get(partition)
            if shard is not None and shard.opening is None and shard.store is None:
                shard.opening = Opening(
                    partition.partition, log, self._recovery, background=self._background
                )

    def _settle(self, partition: TopicPartition) -> None:
        """Take an opening's store, if it is done."""
        with self._lock:
            shard = self._shards.get(partition)
            if shard is None or shard.opening is None or not shard.opening.done:
                return
            opening, shard.opening = shard.opening, None
            try:
                shard.store = opening.result()
            except (OSError, HeaderMismatch, StoreDamaged, Unrecoverable) as error:
                self._rest(partition, shard, str(error))

    def _read_on(self, partition: TopicPartition, records: list[Record]) -> None:
        with self._lock:
            shard = self._shards.get(partition)
            if shard is None or shard.store is None or not shard.reading:
                return
            committed = self._committed.get(partition, 0)
            shard.held += records
            ready = [record for record in shard.held if record.offset < committed]
            shard.held = shard.held[len(ready) :]
            try:
                if ready:
                    self._apply(partition, shard.store, ready)
                shard.store.flush_if_due()
            except (StoreDamaged, OSError) as error:
                damaged = isinstance(error, StoreDamaged)
                if damaged:
                    offset = shard.store.offset
                    self._recovery.damaged(partition.partition, offset, str(error))
                self._rest(partition, shard, str(error), aside=damaged)

    def _reset(self, partition: TopicPartition, why: str) -> None:
        """Begin anew with a shard whose log was trimmed past it."""
        if self._reader is not None:
            self._reader.stop(partition)
        with self._lock:
            shard = self._shards.get(partition)
            if shard is not None:
                self._rest(partition, shard, why, aside=shard.store is not None)
                self._shards[partition].not_before = 0.0

    def _rest(
        self, partition: TopicPartition, shard: _Shard, why: str, *, aside: bool = False
    ) -> None:
        """Let go of a shard that can't be kept warm now. Called with the lock held."""
        number = partition.partition
        _log.warning("shard %d can't be kept warm: %s", number, why)
        if shard.store is not None:
            shard.store.close(flush=False)
        if aside:
            self._put_aside(number, why)
        self._shards[partition] = _Shard(not_before=self._clock() + _RETRY_SECONDS)

    def _disconnect(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        with self._lock:
            for shard in self._shards.values():
                shard.reading = False
                shard.held.clear()

    def close(self) -> None:
        """End the thread, and close what is warm, within a bounded time."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)
        with ExitStack() as stack:
            stack.callback(self._disconnect)
            with self._lock:
                for shard in self._shards.values():
                    if shard.opening is not None:
                        shard.opening.give_up()
                    if shard.store is not None:
                        stack.callback(shard.store.close, flush=False)
                self._shards.clear()
