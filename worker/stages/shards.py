"""The stores of the shards that a worker owns: taken on, replaced, snapshotted, let go."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import NamedTuple

from worker.bus import TopicPartition
from worker.snapshots import LogRange, Recovery, Shipper, Unrecoverable
from worker.stages.base import StageError
from worker.stages.opening import Opening
from worker.stages.replays import Replays, Shard
from worker.stages.standby import Standby, Warm
from worker.store import BandStore, StoreDamaged

__all__ = ["RestoreState", "Shards"]

_log = logging.getLogger(__name__)

_END_SECONDS = 5.0


class RestoreState(NamedTuple):
    """How far a shard is that doesn't answer yet: bytes fetched, records still to be replayed."""

    bytes_done: int = 0
    bytes_total: int = 0
    remaining: int = 0


class Shards:
    """What the stage owns. Belongs to the stage's thread, but for `states`."""

    def __init__(  # noqa: PLR0913 -- all that the stage gives
        self,
        recovery: Recovery,
        put_aside: Callable[[int, str], None],
        shipper: Shipper | None = None,
        standby: Standby | None = None,
        *,
        background: bool,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take how stores come to be open; ``background``: in threads of their own."""
        self._recovery = recovery
        self._put_aside = put_aside
        self._shipper = shipper
        self._standby = standby
        self._background = background
        self._clock = clock
        self._replays = Replays(clock)
        self.owned: dict[TopicPartition, Shard] = {}
        self.opening: dict[TopicPartition, Opening] = {}
        self._fetched = 0
        self.replayed = 0
        """Documents, of all shards; whoever replays them counts here."""

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Keep the shards that stay, let go of those that are gone, begin to open new ones."""
        for partition in self.opening.keys() - offsets.keys():
            self._stop_opening(partition)
        self._let_go(self.owned.keys() - offsets.keys())
        logs = {
            partition: LogRange(*watermarks(partition), committed)
            for partition, committed in offsets.items()
        }
        warm = self._standby.hand_over(logs) if self._standby is not None else {}
        starts = {}
        for partition, log in logs.items():
            shard = self.owned.get(partition)
            if shard is None:
                shard = self._warmed(partition, warm.get(partition), log)
            if shard is None:
                self._open(partition, log)
                continue
            shard.log = log
            shard.committed = log.committed
            why = _objection(log, shard.store)
            if why is None:
                starts[partition] = shard.store.offset
            else:
                self.replace(partition, why)
        return {**starts, **self.started()}

    def _warmed(self, partition: TopicPartition, warm: Warm | None, log: LogRange) -> Shard | None:
        """Own what was kept warm: a store at once, what is on its way when it is there."""
        if isinstance(warm, BandStore):
            self.owned[partition] = Shard(warm, log, log.committed)
        elif warm is not None:
            self.opening[partition] = warm
        return self.owned.get(partition)

    def _stop_opening(self, partition: TopicPartition) -> None:
        opening = self.opening[partition]
        if opening.given_up:
            return
        if self._standby is not None and self._standby.take(partition, opening):
            del self.opening[partition]
        else:
            opening.give_up()

    def _open(self, partition: TopicPartition, log: LogRange) -> None:
        """Begin to open a shard, unless that is under way; then only its goal has moved."""
        former = self.opening.get(partition)
        if former is not None and not former.given_up:
            former.log = log
            return
        self.opening[partition] = Opening(
            partition.partition, log, self._recovery, after=former, background=self._background
        )

    def started(self) -> dict[TopicPartition, int]:
        """Take on what is open by now; give the offsets to read from.

        Raises:
            StageError: a shard can't be opened.
        """
        starts = {}
        for partition, opening in list(self.opening.items()):
            if not opening.done:
                continue
            del self.opening[partition]
            self._fetched += opening.progress.moved
            if opening.given_up:
                continue
            shard = Shard(_opened(opening), opening.log, opening.log.committed)
            self.owned[partition] = shard
            why = _objection(opening.log, shard.store)
            if why is not None:  # what was known of the log has changed meanwhile
                self.replace(partition, why)
                continue
            starts[partition] = shard.store.offset
        self._replays.follow(self.owned)
        return starts

    def replace(self, partition: TopicPartition, why: str) -> None:
        """Put a store aside that can't be used, and begin to get another."""
        shard = self.owned.pop(partition)
        shard.store.close(flush=False)
        self._put_aside(partition.partition, why)
        high = max(shard.log.high, shard.committed)
        self._open(partition, shard.log._replace(high=high, committed=shard.committed))

    @contextmanager
    def guarded(self, partition: TopicPartition) -> Iterator[None]:
        """Replace the shard's store if it turns out to be damaged.

        Raises:
            StageError: the disk is full, or refuses.
        """
        try:
            yield
        except StoreDamaged as error:
            offset = self.owned[partition].store.offset
            self._recovery.damaged(partition.partition, offset, str(error))
            self.replace(partition, str(error))
        except OSError as error:
            raise StageError(_refused(error)) from error

    def idle(self) -> None:
        """Flush and snapshot what is due."""
        for partition, shard in list(self.owned.items()):
            with self.guarded(partition):
                shard.store.flush_if_due()
                if self._shipper is not None:
                    self._shipper.ship_if_due(shard.store, partition.partition)
        if self._standby is not None and not self._background:
            self._standby.step(0.0)
        self._replays.follow(self.owned)

    def waiting(self) -> frozenset[TopicPartition]:
        """Name the owned partitions whose store isn't open."""
        return frozenset(p for p, opening in self.opening.items() if not opening.given_up)

    def states(self) -> dict[int, RestoreState]:
        """Tell of the shards that don't answer yet; may be called from any thread."""
        states = {}
        for partition, opening in list(self.opening.items()):
            if not opening.given_up:
                progress = opening.progress
                states[partition.partition] = RestoreState(
                    progress.bytes_done, progress.bytes_total, opening.log.committed
                )
        for partition, shard in list(self.owned.items()):
            if shard.silent:
                remaining = shard.committed - shard.store.offset
                states[partition.partition] = RestoreState(remaining=remaining)
        return states

    def standby_lag(self) -> Mapping[int, int]:
        """Give how many records behind their groups the shards kept warm are."""
        return self._standby.lag() if self._standby is not None else {}

    def moved(self) -> int:
        """Give a number that grows as long as anything is fetched or replayed."""
        under_way = sum(opening.progress.moved for opening in list(self.opening.values()))
        return self._fetched + under_way + self.replayed

    def _let_go(self, partitions: frozenset[TopicPartition] | set[TopicPartition]) -> None:
        """Close stores, each even if another one fails.

        Raises:
            StageError: what was in memory can't be written; the log has it.
        """
        try:
            with ExitStack() as stack:
                for partition in partitions:
                    if self._shipper is not None:
                        self._shipper.forget(partition.partition)
                    store = self.owned.pop(partition).store
                    if self._standby is None or not self._standby.take(partition, store):
                        stack.callback(store.close)
        except StoreDamaged as error:
            _log.warning("closed, and to be put aside when it is opened again: %s", error)
        except OSError as error:
            raise StageError(_refused(error)) from error

    def close(self) -> None:
        """Let go of everything, within a bounded time."""
        with ExitStack() as stack:
            if self._shipper is not None:
                stack.callback(self._shipper.close)
            stack.callback(self._let_go, set(self.owned))
            if self._standby is not None:
                self._standby.close()
            for opening in self.opening.values():
                opening.give_up()
            deadline = self._clock() + _END_SECONDS
            for opening in self.opening.values():
                opening.wait(max(0.0, deadline - self._clock()))


def _objection(log: LogRange, store: BandStore) -> str | None:
    """Say why a store that is open can't be read on from its offset; None: it can."""
    why = log.objection(store.offset)
    if why is None and store.offset < log.low:
        why = f"it is empty, and the log begins at {log.low}"
    return why


def _opened(opening: Opening) -> BandStore:
    try:
        return opening.result()
    except Unrecoverable as error:
        raise StageError(str(error)) from error
    except OSError as error:
        raise StageError(_refused(error)) from error


def _refused(error: OSError) -> str:
    return (
        f"the index can't be read or written: {error}. Look at the disk's space, quota and"
        " permissions, and start the worker again: it goes on from the last flush"
    )
