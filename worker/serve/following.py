"""Follows the log of all shards of an application, and lets queries read them meanwhile."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TypeVar

from worker.app import Application
from worker.bus import (
    BusError,
    Denied,
    LogReader,
    LogTruncated,
    OffsetOutOfRange,
    PartitionUnreadable,
    Record,
    TopicPartition,
    TopicRecreated,
)
from worker.closing import Closing
from worker.corrections.state import Corrections, erasure_name
from worker.groups.matches import by_rows
from worker.groups.reading import GroupsReader
from worker.groups.store import GroupStore, GroupsUnusable
from worker.index.errors import HeaderMismatch, StoreDamaged, Unrecoverable
from worker.index.opening import Opening
from worker.index.recovery import LogRange, Recovery
from worker.index.store import BandStore
from worker.index.store_reader import StoreReader
from worker.serve.shard_lock import ShardLock
from worker.stages.base import StageError
from worker.stages.judge import pass_over
from worker.stages.order import Documents, FrameOutOfPlace, Placed
from worker.wire.codec import hand_over

T = TypeVar("T")

_log = logging.getLogger(__name__)

_NEAR = 64
"""A shard is warm once it has been at most this many records behind the log's end."""
_TOGETHER = 1_000
"""Documents of frames that have come together and are judged together, which costs less than one by
one; but a query may have to wait for what all of them change."""
_RECORDS = 8
_BYTES = 8 << 20
"""The limits of one read. All shards are at most so far apart."""
_WAIT_SECONDS = 0.5
_LOOK_SECONDS = 1.0
_RETRY_SECONDS = 30.0
_END_SECONDS = 5.0


class Warming(Exception):
    """Some shards can't be read yet; the message says which."""


@dataclass(frozen=True, slots=True)
class Reached:
    """How far the shards are.

    Attributes:
        position: the offset in the log that all have reached.
        behind: by shard, how many records of the log are left to read, if that is known.
        checked_seconds: how long ago the log's end was looked up; None: never.
        warming: the shards that can't be read yet.
    """

    position: int
    behind: Mapping[int, int]
    checked_seconds: float | None
    warming: list[int]

    @property
    def furthest_behind(self) -> int | None:
        """Return how far the last shard is behind; None if that isn't known of all."""
        return max(self.behind.values(), default=None)


@dataclass(slots=True)
class _Shard:
    """A shard that follows the log. Only the thread that applies the log changes it.

    Attributes:
        seat: its name for the reader.
        lock: keeps queries out while what they read changes, or the store is closed.
        reading: whether more of the log is read.
        delivered: the offset after the last record that was read.
        position: the offset that was read, past transaction markers as well.
        warm: whether the store has ever been near the log's end.
        not_before: when, by the clock, the shard is tried again after a failure.
    """

    seat: TopicPartition
    lock: ShardLock
    opening: Opening | None = None
    store: BandStore | None = None
    reading: bool = False
    delivered: int = 0
    position: int = 0
    warm: bool = False
    not_before: float = 0.0

    @property
    def number(self) -> int:
        return self.seat.partition

    @property
    def offset(self) -> int:
        store = self.store
        return 0 if store is None else store.offset

    def left(self, end: int) -> int:
        """Return how many offsets it has yet to apply, if the log ends there.

        At the end of the log it has none left, even if only transaction markers follow its last
        record.
        """
        offset = self.offset
        reached = max(offset, self.position) if offset >= self.delivered else offset
        return max(0, end - reached)


class Following(Closing):
    """The shards of an application, as of its log.

    No group assigns them, and nobody takes them over: each is opened, and reads all that the log
    has. A thread judges the frames as *index* does, and applies their changes shard by shard.
    Frames that have come together are judged together. Queries read beside it: a lock for each
    shard keeps them apart only while what they read changes, never while frames are judged, or
    while runs are sorted, packed and merged.

    A shard that can't be followed is closed, the reason is logged, and it is retried later.

    The groups are made from the matches of all shards. Before a shard goes past frames, what it has
    found is noted there. A store that is ahead of what was noted of it, because the groups were
    lost or are new, is put aside and read again. If the log doesn't reach back, the groups begin
    where the shards are.
    """

    def __init__(
        self,
        application: Application,
        clock: Callable[[], float] = monotonic,
        lock: Callable[[], ShardLock] = ShardLock,
    ) -> None:
        """Take the application, and what makes a shard's lock. Nothing is read before `check`."""
        application.directories.tidy()
        self._topology = application.topology
        self._directories = application.directories
        self._recovery = application.recovery(application.repository())
        self._from_log = application.recovery(None)
        self._open_groups = application.groups
        self.keeps_groups = application.settings.serve.groups
        self._groups: GroupStore | None = None
        self._groups_lock = lock()
        self._groups_not_before = 0.0
        self._judge = application.judge()
        self._connect = partial(application.reader, "serve")
        self._background = application.environment.background
        self._clock = clock
        seats = (
            TopicPartition(self._topology.seats, number)
            for number in range(self._topology.layout.shards)
        )
        self._shards = {seat.partition: _Shard(seat, lock()) for seat in seats}
        self._reader: LogReader | None = None
        self._log: LogRange | None = None
        self._looked_at = 0.0
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._error: BaseException | None = None

    def check(self) -> None:
        """Begin, if that hasn't been done; call this now and then.

        Raises:
            Denied: a right is missing.
            BaseException: the error that ended the thread, which nothing can mend.
        """
        if self._error is not None:
            raise self._error
        if self._background and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="following", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self.step(_WAIT_SECONDS)
        except BaseException as error:  # noqa: BLE001 -- carried to `check`, which raises it
            self._error = error
        finally:
            self._release()

    def step(self, timeout: float = 0.0) -> None:
        """Read on and apply what has come; only the thread does it, if there is one.

        Raises:
            StageError: another generation of the index has taken over.
            BusError: a right is missing, or the log was recreated or cut off.
        """
        records: Sequence[Record] = ()
        try:
            if self._reader is None:
                self._reader = self._connect()
            log = self._look(self._reader)
            if self._has_groups():
                self._start_all(self._reader, log)
            records = self._read(self._reader, timeout)
        except (Denied, TopicRecreated, LogTruncated):
            raise
        except BusError as error:
            _log.warning("the log can't be followed: %s; retrying", error)
            self._disconnect()
            if self._background:
                self._ending.wait(_LOOK_SECONDS)
        of_shards: dict[int, list[Record]] = {}
        for record in records:
            of_shards.setdefault(record.partition, []).append(record)
        for number, shard in self._shards.items():
            if shard.store is not None:
                self._apply(shard, shard.store, of_shards.get(number, []))
        self._erase()

    def _erase(self) -> None:
        """Remove from the groups' files what was forgotten, if it is time to."""
        if self._groups is not None:
            try:
                self._groups.erase_if_due()
            except GroupsUnusable as error:
                self._give_up_groups(error)

    def _has_groups(self) -> bool:
        """Open the groups, if they are kept; return whether shards may be opened."""
        if not self.keeps_groups or self._groups is not None:
            return True
        if self._clock() < self._groups_not_before:
            return False
        try:
            self._groups = self._open_groups()
        except GroupsUnusable as error:
            self._give_up_groups(error)
        return self._groups is not None

    def _give_up_groups(self, error: GroupsUnusable) -> None:
        """Close the groups for a while, and all shards; remove what is no use any more."""
        self._groups_not_before = self._clock() + (0 if error.lost else _RETRY_SECONDS)
        for shard in self._shards.values():
            self._give_up(shard, str(error))
            shard.not_before = self._groups_not_before
        self._close_groups()
        if error.lost:
            _log.warning("the groups are made anew: %s", error)
            shutil.rmtree(self._directories.groups_path, ignore_errors=True)

    def _close_groups(self) -> None:
        with self._groups_lock:
            groups, self._groups = self._groups, None
            if groups is not None:
                groups.close()

    def _look(self, reader: LogReader) -> LogRange:
        """Return the log's range, which is looked up about once a second."""
        now = self._clock()
        if self._log is None or not self._background or now - self._looked_at >= _LOOK_SECONDS:
            low, end = reader.watermarks(self._topology.order)
            self._log, self._looked_at = self._recovery.log_range((low, end), end), now
        return self._log

    def _start_all(self, reader: LogReader, log: LogRange) -> None:
        try:
            for shard in self._shards.values():
                self._start(shard, reader, log)
        except GroupsUnusable as error:
            self._give_up_groups(error)

    def _start(self, shard: _Shard, reader: LogReader, log: LogRange) -> None:
        """Open a shard's store, and begin to read the log for it, unless that has been done."""
        if shard.reading or self._clock() < shard.not_before:
            return
        if shard.store is None:
            shard.opening = shard.opening or Opening(
                shard.number, log, self._opener(shard.number), background=self._background
            )
            if not shard.opening.done:
                return
            opening, shard.opening = shard.opening, None
            try:
                shard.store = opening.result()
            except (OSError, HeaderMismatch, StoreDamaged, Unrecoverable) as error:
                self._stop(shard, str(error))
                return
            if not self._fits(shard, shard.store, log):
                return
        shard.delivered = shard.position = log.start(shard.store.offset)
        reader.start(shard.seat, shard.position)
        shard.reading = True

    def _opener(self, shard: int) -> Recovery:
        """Return what opens a shard: from the log, if the groups can go on with that.

        A snapshot is ahead of what was noted of the shard.
        """
        groups, log = self._groups, self._log
        if groups is None or log is None:
            return self._recovery
        goes_on = log.reaches(groups.progress.reached[shard])
        if log.beginning is not None or (goes_on and self._directories.path(shard).exists()):
            return self._from_log
        return self._recovery

    def _fits(self, shard: _Shard, store: BandStore, log: LogRange) -> bool:
        """Return whether a shard's store can go on with the groups; if not, it is put aside."""
        groups = self._groups
        if groups is None or store.offset <= groups.progress.reached[shard.number]:
            return True
        if log.beginning is None or store.offset == log.beginning:
            _log.warning("the groups begin at offset %d of the log", store.offset)
            groups.begin_at(store.offset)
            return True
        self._give_up(shard, "the groups have yet to be made of its log", aside=True)
        shard.not_before = 0.0
        return False

    def _read(self, reader: LogReader, timeout: float) -> Sequence[Record]:
        """Read once, and note how far each shard has read."""
        try:
            records = reader.read(_RECORDS, _BYTES, timeout)
        except OffsetOutOfRange as error:  # The log was trimmed: another store is opened at once.
            shard = self._shards[error.partition.partition]
            self._give_up(shard, str(error), aside=True)
            shard.not_before = 0.0
            return ()
        except PartitionUnreadable as error:
            self._stop(self._shards[error.partition.partition], str(error))
            return ()
        for record in records:
            self._shards[record.partition].delivered = record.offset + 1
        for shard in self._shards.values():
            if shard.reading:
                shard.position = reader.position(shard.seat) or shard.delivered
        return records

    def _apply(self, shard: _Shard, store: BandStore, records: Sequence[Record]) -> None:
        """Apply records to a shard's store, and do what is due there, also without any."""
        try:
            self._judge_all(shard, store, records)
            store.flush_if_due()
            store.purge_if_due()
        except StoreDamaged as error:
            self._opener(shard.number).damaged(shard.number, store.offset, str(error))
            self._give_up(shard, str(error), aside=True)
        except FrameOutOfPlace as error:
            self._give_up(shard, str(error), aside=True)
        except GroupsUnusable as error:
            self._give_up_groups(error)
        except OSError as error:
            self._give_up(shard, str(error))
        else:
            end = None if self._log is None else self._log.high
            shard.warm |= end is not None and shard.left(end) <= _NEAR

    def _judge_all(self, shard: _Shard, store: BandStore, records: Sequence[Record]) -> None:
        """Judge short frames together, but not so many that queries would wait for long.

        Raises:
            StageError: another generation of the index has taken over.
        """
        frames: list[Placed] = []
        for record in records:
            generation = hand_over(record.value, self._topology.layout.id)
            if generation is not None:
                self._take(shard, store, frames)
                self._pass(shard, store, record.offset, generation)
                continue
            frame = self._judge.placed(record)
            if len(Documents([*frames, frame])) > _TOGETHER:
                self._take(shard, store, frames)
            frames.append(frame)
        self._take(shard, store, frames)

    def _take(self, shard: _Shard, store: BandStore, frames: list[Placed]) -> None:
        """Judge frames and apply their changes; then the list is empty."""
        if not frames:
            return
        documents = Documents([*frames])
        frames.clear()
        judgement = self._judge.judge(shard.number, store, documents)
        if self._groups is not None:
            found = by_rows(
                documents.frames, judgement.decision.matches, judgement.corrected.allowed
            )
            self._groups.note(shard.number, documents.frames, found)
        judgement.apply(store, shard.lock)

    def _pass(self, shard: _Shard, store: BandStore, offset: int, generation: int) -> None:
        if generation > self._topology.generation:
            raise StageError(
                f"generation {generation} of the index has taken over; start again to answer from"
                " it"
            )
        if self._groups is not None:
            self._groups.pass_over(shard.number, offset + 1)
        with shard.lock:
            pass_over(store, offset + 1)

    def _stop(self, shard: _Shard, why: str) -> None:
        """Read nothing more for a shard for a while."""
        _log.warning("shard %d can't be followed: %s", shard.number, why)
        if self._reader is not None:
            self._reader.stop(shard.seat)
        shard.reading = False
        shard.not_before = self._clock() + _RETRY_SECONDS

    def _give_up(self, shard: _Shard, why: str, *, aside: bool = False) -> None:
        """Close the store of a shard for a while; with ``aside``, put it aside as unusable."""
        self._stop(shard, why)
        _closed(shard)
        if aside:
            self._directories.put_aside(shard.number, why)

    def read(self, shard: int, ask: Callable[[StoreReader], T]) -> T:
        """Return what ``ask`` returns; see `Shards`."""
        one = self._shards[shard]
        with one.lock.reading():
            if one.store is None or not one.warm:
                raise Warming(f"shard {shard} is warming up")
            return ask(one.store.reader())

    def groups(self, ask: Callable[[GroupsReader], T]) -> T:
        """Return what ``ask`` returns of the groups, which may be changed meanwhile.

        Raises:
            Warming: they can't be read yet.
            GroupsUnusable: they can't be read.
        """
        with self._groups_lock.reading():
            groups = self._groups
            if groups is None or not all(shard.warm for shard in self._shards.values()):
                raise Warming("the groups are warming up")
            return groups.read(ask)

    def corrections(self) -> Corrections:
        """Return what people have corrected, as far as shard 0 has read the log.

        Raises:
            Warming: shard 0 can't be read yet.
        """
        one = self._shards[0]
        with one.lock.reading():
            if one.store is None or not one.warm:
                raise Warming("shard 0 is warming up")
            return one.store.corrections

    def forgotten(self, ident: bytes, sequence: int, logged: Callable[[], int | None]) -> bool:
        """Return whether a document was forgotten, as far as this server knows.

        The groups know of all tombstones since they began, and shard 0 of those that people have
        sent lately. ``logged`` returns the log's time of the document's frame in ms; None: it is
        gone.

        Raises:
            Warming: that can't be known yet.
            GroupsUnusable: the groups can't be read.
        """
        if self.keeps_groups:
            known, begun = self.groups(
                lambda groups: (groups.forgotten(ident, sequence), groups.progress.begun)
            )
            if known or not begun:
                return known
        name = erasure_name(ident)
        since = [one.since for one in self.corrections().erasures if one.name == name]
        if not since:
            return False
        at = logged()
        return at is None or at <= max(since)

    def use(self, call: Callable[[Mapping[int, BandStore]], None]) -> None:
        """Call with the open stores; nothing is applied to any meanwhile."""
        with ExitStack() as stack:
            for shard in self._shards.values():
                stack.enter_context(shard.lock.reading())
            stores = {number: shard.store for number, shard in self._shards.items()}
            call({number: store for number, store in stores.items() if store is not None})

    def reached(self) -> Reached:
        """Return how far the shards are. Waits for nothing."""
        log, shards = self._log, self._shards
        return Reached(
            min(shard.offset for shard in shards.values()),
            {} if log is None else {n: shard.left(log.high) for n, shard in shards.items()},
            None if log is None else max(0.0, self._clock() - self._looked_at),
            [n for n, shard in shards.items() if not shard.warm],
        )

    def close(self) -> None:
        """End the thread and close the stores, within a bounded time.

        A store that is in use for longer is closed by the thread.
        """
        self._ending.set()
        if self._thread is None:
            self._release()
        else:
            self._thread.join(_END_SECONDS)

    def _release(self) -> None:
        self._disconnect()
        for shard in self._shards.values():
            if shard.opening is not None:
                shard.opening.give_up()
            _closed(shard)
        self._close_groups()

    def _disconnect(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        for shard in self._shards.values():
            shard.reading = False


def _closed(shard: _Shard) -> None:
    """Close the store of a shard once nobody reads it."""
    with shard.lock:
        store, shard.store = shard.store, None
        shard.warm = False
        if store is not None:
            store.close(flush=False)
