"""Keeps all shards of an application warm, and lets queries read them meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

from worker.app import Application
from worker.bus import Record, TopicPartition
from worker.files.closing import Closing
from worker.index.store import BandStore
from worker.index.store_reader import StoreReader
from worker.queries.progress import LogProgress, WholeLogReader
from worker.queries.shard_lock import ShardLock
from worker.stages.base import StageError
from worker.stages.judge import pass_over
from worker.stages.order import Documents, Placed
from worker.wire import hand_over

__all__ = ["Following", "Reached", "Warming"]

T = TypeVar("T")

_NEAR = 64
"""A shard is warm once it has been at most this many records behind the log's end."""
_TOGETHER = 1_000
"""Documents of frames that have come together and are judged together, which costs less than one by
one; but a query may have to wait for what all of them change."""


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


class Following(Closing):
    """The shards of an application, as of its log.

    A thread judges the frames of the log as *index* does, and applies their changes shard by
    shard. Frames that have come together are judged together. Queries read beside it: a lock for
    each shard keeps them apart only while what they read changes, never while frames are judged, or
    while runs are sorted, packed and merged.
    """

    def __init__(
        self,
        application: Application,
        clock: Callable[[], float] = monotonic,
        lock: Callable[[], ShardLock] = ShardLock,
    ) -> None:
        """Take the application, and what makes a shard's lock. Nothing is read before `check`."""
        self._topology = application.topology
        shards = range(self._topology.layout.shards)
        self._seats = {shard: TopicPartition(self._topology.seats, shard) for shard in shards}
        self._locks = {shard: lock() for shard in shards}
        self._warm: dict[int, BandStore] = {}
        self._judge = application.judge()
        self._progress = LogProgress(clock)
        self._standby = application.follower(
            lambda connect: WholeLogReader(self._topology.order, connect, self._progress),
            self._apply,
        )

    def check(self) -> None:
        """Begin, if that hasn't been done; call this now and then.

        Raises:
            Denied: a right is missing.
            BaseException: the error that ended the thread, which nothing can mend.
        """
        if self._progress.denied is not None:
            raise self._progress.denied
        self._standby.hand_over({})

    def step(self) -> None:
        """Read on and apply what has come, for whoever has no thread do it."""
        self.check()
        self._standby.step(0.0)

    def _apply(self, shard: int, store: BandStore, records: list[Record]) -> None:
        """Apply records: short frames together, but not so many that queries would wait for long.

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

    def _take(self, shard: int, store: BandStore, frames: list[Placed]) -> None:
        """Judge frames and apply their changes; then the list is empty."""
        if not frames:
            return
        documents = Documents([*frames])
        frames.clear()
        judgement = self._judge.judge(shard, store, documents)
        judgement.apply(store, self._locks[shard])

    def _pass(self, shard: int, store: BandStore, offset: int, generation: int) -> None:
        if generation > self._topology.generation:
            raise StageError(
                f"generation {generation} of the index has taken over; start again to answer from"
                " it"
            )
        with self._locks[shard]:
            pass_over(store, offset + 1)

    def read(self, shard: int, ask: Callable[[StoreReader], T]) -> T:
        """Return what ``ask`` returns; see `Shards`."""
        store = self._standby.stores().get(shard)
        if store is None or not self._is_warm(shard, store):
            raise Warming(f"shard {shard} is warming up")
        with self._locks[shard].reading():
            return ask(store.reader())

    def use(self, call: Callable[[Mapping[int, BandStore]], None]) -> None:
        """Call with the open stores; nothing is applied to any meanwhile."""
        with ExitStack() as stack:
            for lock in self._locks.values():
                stack.enter_context(lock.reading())
            call(self._standby.stores())

    def _is_warm(self, shard: int, store: BandStore) -> bool:
        """Return whether a store has ever been near the log's end."""
        if self._warm.get(shard) is store:
            return True
        behind = self._progress.behind(self._seats[shard], store.offset)
        if behind is None or behind > _NEAR:
            return False
        self._warm[shard] = store
        return True

    def reached(self) -> Reached:
        """Return how far the shards are. Waits for nothing."""
        stores = self._standby.stores()
        offsets = {shard: stores[shard].offset if shard in stores else 0 for shard in self._seats}
        behind = {
            shard: self._progress.behind(self._seats[shard], offset)
            for shard, offset in offsets.items()
        }
        return Reached(
            min(offsets.values()),
            {shard: count for shard, count in behind.items() if count is not None},
            self._progress.checked_seconds(),
            [
                shard
                for shard in self._seats
                if shard not in stores or not self._is_warm(shard, stores[shard])
            ],
        )

    def close(self) -> None:
        """End the thread and close the stores, within a bounded time."""
        self._standby.close()
