"""Shards of other workers, kept warm: read along, never past what their group has committed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from worker.bus import (
    BusError,
    OffsetOutOfRange,
    PartitionUnreadable,
    Reader,
    Record,
    TopicPartition,
    TopicRecreated,
)
from worker.snapshots import LogRange, Recovery, Unrecoverable
from worker.stages.opening import Opening
from worker.stages.tiling import FrameOutOfPlace
from worker.store import BandStore, HeaderMismatch, StoreDamaged

__all__ = ["Standby", "Warm"]

_log = logging.getLogger(__name__)

_ASK_SECONDS = 1.0
_RETRY_SECONDS = 30.0
_END_SECONDS = 5.0
_RECORDS = 8
_BYTES = 4 << 20
"""Frames at a time: a shard that is taken over comes once these are applied."""
_BYTES = 8 << 20
_HELD = 64
"""Frames read ahead of the group; with more, reading rests until the group has come on."""

Warm = BandStore | Opening
"""A shard as it passes between the stage and its standby: open, or on its way."""


@dataclass(slots=True)
class _Shard:
    """A shard that is kept warm.

    ``busy``: the standby's thread is at work on its store, without the lock. Whoever takes the
    shard over meanwhile gets ``promised``, which has the store once that has ended.
    """

    opening: Opening | None = None
    store: BandStore | None = None
    held: list[Record] = field(default_factory=list)
    reading: bool = False
    not_before: float = 0.0
    busy: bool = False
    promised: Opening | None = None


class Standby:
    """Keeps shards warm in a thread of its own; the stage takes them from it, and gives them back.

    Whatever keeps a shard from being kept warm is a warning, and tried again. Nobody waits for
    it: the lock is held to say whose a shard is, and never while a store, the log or the disk is
    at work.
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

    def hand_over(self, owned: Mapping[TopicPartition, LogRange]) -> dict[TopicPartition, Warm]:
        """Give what is warm of these shards, which the stage owns now; keep all others warm.

        A shard whose store is at work comes as an `Opening`, which is done when that has ended.

        Raises:
            BaseException: what the thread has died of.
        """
        if self._error is not None:
            raise self._error
        taken: dict[TopicPartition, Warm] = {}
        with self._lock:
            for partition, log in owned.items():
                shard = self._shards.pop(partition, None)
                warm = self._released(partition, shard, log) if shard is not None else None
                if warm is not None:
                    taken[partition] = warm
            for partition in self._wanted.difference(owned):
                self._shards.setdefault(partition, _Shard())
        for partition, warm in taken.items():
            if isinstance(warm, BandStore):
                _tell_warm(partition, warm)
        if self._background and self._thread is None and self._wanted:
            self._thread = threading.Thread(target=self._run, name="standby", daemon=True)
            self._thread.start()
        return taken

    def _released(self, partition: TopicPartition, shard: _Shard, log: LogRange) -> Warm | None:
        """Let go of a shard, at once or, while its store is at work, by a promise."""
        if shard.busy:
            shard.promised = Opening(
                partition.partition, log, self._recovery, background=self._background, begin=False
            )
            return shard.promised
        if shard.opening is not None:
            shard.opening.log = log
        return shard.store or shard.opening

    def take(self, partition: TopicPartition, warm: Warm) -> bool:
        """Take a shard that the stage has lost; False: it isn't wanted."""
        if partition not in self._wanted or self._ending.is_set():
            return False
        with self._lock:
            self._shards[partition] = (
                _Shard(store=warm) if isinstance(warm, BandStore) else _Shard(opening=warm)
            )
        return True

    def lag(self) -> Mapping[int, int]:
        """Give, by shard, how many records of those that the group has dealt with are missing.

        Of a shard whose group has not been asked yet nothing is known.
        """
        committed = self._committed
        lags = {}
        for partition, shard in list(self._shards.items()):
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
        """Look how far the group is, read, and apply what it has committed."""
        try:
            if self._reader is None:
                self._reader = self._connect()
            records = self._read(self._reader, timeout)
        except TopicRecreated:
            raise  # The stage learns of it, too.
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

    def _read(self, reader: Reader, timeout: float) -> Sequence[Record]:
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
            shard = self._shards.get(partition)
            committed = self._committed.get(partition)
            if shard is None or self._clock() < shard.not_before:
                reader.stop(partition)
                continue
            if committed is None:
                continue
            if shard.store is None and shard.opening is None:
                log = LogRange(*reader.watermarks(partition), committed)
                self._open(partition, log)
            self._settle(partition)
            # The stage may take the shard at any time. It is then read in vain, until the next
            # time round; what comes is dropped.
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
                shard.not_before = self._clock() + _RETRY_SECONDS
                why = str(error)
            else:
                return
        _warn(partition, why)

    @contextmanager
    def _at_work(self, partition: TopicPartition) -> Iterator[_Shard | None]:
        """Have a shard's store, and its directory, to oneself; None if there is none here.

        Who has taken the shard over meanwhile gets the store at the end.
        """
        with self._lock:
            shard = self._shards.get(partition)
            if shard is None or shard.store is None:
                shard = None
            else:
                shard.busy = True
        if shard is None:
            yield None
            return
        try:
            yield shard
        finally:
            with self._lock:
                shard.busy = False
                promised, store = shard.promised, shard.store
                if promised is not None or self._ending.is_set():
                    shard.store = None
                else:
                    store = None
            if promised is not None:
                _keep_promise(partition, promised, store)
            elif store is not None:
                store.close(flush=False)

    def _read_on(self, partition: TopicPartition, records: list[Record]) -> None:
        with self._at_work(partition) as shard:
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
            except StoreDamaged as error:
                offset = shard.store.offset
                self._recovery.damaged(partition.partition, offset, str(error))
                self._give_up(partition, shard, str(error), aside=True)
            except FrameOutOfPlace as error:
                self._give_up(partition, shard, str(error), aside=True)
            except OSError as error:
                self._give_up(partition, shard, str(error))

    def _reset(self, partition: TopicPartition, why: str) -> None:
        """Begin anew with a shard whose log was trimmed past it."""
        with self._at_work(partition) as shard:
            if shard is not None and shard.reading:
                self._give_up(partition, shard, why, aside=True)
                shard.not_before = 0.0

    def _let_rest(self, partition: TopicPartition, why: str) -> None:
        """Leave a shard as it is for a while, and read nothing for it."""
        shard = self._shards.get(partition)
        if shard is not None and shard.reading:
            _warn(partition, why)
            shard.reading = False
            shard.held.clear()
            shard.not_before = self._clock() + _RETRY_SECONDS

    def _give_up(
        self, partition: TopicPartition, shard: _Shard, why: str, *, aside: bool = False
    ) -> None:
        """Close a store at work that can't be kept warm; ``aside``: it is no good any more."""
        _warn(partition, why)
        store, shard.store = shard.store, None
        shard.reading = False
        shard.held.clear()
        shard.not_before = self._clock() + _RETRY_SECONDS
        if store is not None:
            store.close(flush=False)
        if aside:
            self._put_aside(partition.partition, why)

    def _disconnect(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        for shard in list(self._shards.values()):
            shard.reading = False
            shard.held.clear()

    def close(self) -> None:
        """End the thread, and close what is warm, within a bounded time.

        A store that is at work is left to the thread, which closes it.
        """
        self._ending.set()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)
        else:
            self._disconnect()
        with self._lock:
            shards = list(self._shards.values())
            self._shards.clear()
            idle = [shard.store for shard in shards if shard.store is not None and not shard.busy]
        for shard in shards:
            if shard.opening is not None:
                shard.opening.give_up()
        for store in idle:
            store.close(flush=False)


def _keep_promise(partition: TopicPartition, promised: Opening, store: BandStore | None) -> None:
    """Give the store to whoever has taken the shard over; if it is gone, have another opened."""
    if store is None:
        promised.begin()
        return
    _tell_warm(partition, store)
    promised.fulfil(store)


def _tell_warm(partition: TopicPartition, store: BandStore) -> None:
    _log.info("shard %d was kept warm, at offset %d", partition.partition, store.offset)


def _warn(partition: TopicPartition, why: str) -> None:
    _log.warning("shard %d can't be kept warm: %s", partition.partition, why)
