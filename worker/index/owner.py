"""The shards that a worker owns: their stores are opened, replaced, snapshotted and released."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import monotonic

from worker.bus import TopicPartition
from worker.generations.turns import NEVER
from worker.index.directory import ShardDirectories
from worker.index.errors import StoreDamaged, Unrecoverable
from worker.index.opening import Opening
from worker.index.recovery import LogRange, Recovery
from worker.index.snapshots.shipper import Shipper
from worker.index.standby import Standby
from worker.index.store import BandStore
from worker.index.warm_shards import Warm
from worker.stages.base import RestoreState, StageError, Status

_log = logging.getLogger(__name__)

_LOG_SECONDS = 10.0


@dataclass(slots=True)
class _Replay:
    """The begin of a replay, and when it was last logged."""

    documents: int
    began: float
    logged: float


@dataclass(slots=True)
class OwnedShard:
    """An open store, its log, and the offset from which on it answers, `NEVER` if it is built."""

    store: BandStore
    log: LogRange
    committed: int
    _replay: _Replay | None = None

    @property
    def silent(self) -> bool:
        """Return whether the frames that it reads were already answered."""
        return self.store.offset < self.committed < NEVER

    def report(self, number: int, now: float) -> None:
        """Log the start, the progress and the end of a replay; ``now`` is in seconds."""
        replay = self._replay
        if replay is None:
            if self.silent:
                self._replay = _Replay(self.store.documents, now, now)
                _log.info(
                    "shard %d replays its log from offset %d to %d before it answers",
                    number,
                    self.store.offset,
                    self.committed,
                )
        elif not self.silent or now - replay.logged >= _LOG_SECONDS:
            replay.logged = now
            _log.info(
                "shard %d %s: %d documents in %.1f s, at offset %d of %d",
                number,
                "is replaying" if self.silent else "answers",
                self.store.documents - replay.documents,
                now - replay.began,
                self.store.offset,
                self.committed,
            )
            if not self.silent:
                self._replay = None


_END_SECONDS = 5.0


class OwnedShards:
    """The shards that a worker owns; see `Ownership`.

    Used in the stage's thread, except for `status`.
    """

    def __init__(  # noqa: PLR0913 -- the composition root's business
        self,
        recovery: Recovery,
        directories: ShardDirectories,
        shipper: Shipper | None = None,
        standby: Standby | None = None,
        *,
        background: bool,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take the parts; with ``background``, stores are opened in threads of their own."""
        self._recovery = recovery
        self._directories = directories
        self._shipper = shipper
        self._standby = standby
        self._background = background
        self._clock = clock
        self.owned: dict[TopicPartition, OwnedShard] = {}
        self.opening: dict[TopicPartition, Opening] = {}
        self._fetched = 0
        self._replayed = 0

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Keep the shards that stay, release those that were revoked, start opening new ones.

        Whoever ships snapshots deletes from the log what those of all shards contain, also from
        under a shard that replays it into an earlier store of its own. That store is replaced.
        """
        for partition in self.opening.keys() - offsets.keys():
            self._stop_opening(partition)
        self._let_go(self.owned.keys() - offsets.keys())
        logs = {
            partition: self._recovery.log_range(watermarks(partition), committed)
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
                starts[partition] = log.start(shard.store.offset)
            else:
                self.replace(partition, why)
        return {**starts, **self.started()}

    def _warmed(
        self, partition: TopicPartition, warm: Warm | None, log: LogRange
    ) -> OwnedShard | None:
        """Take over a warm shard: an open store at once, an opening one when it is done."""
        if isinstance(warm, BandStore):
            self.owned[partition] = OwnedShard(warm, log, log.committed)
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
        """Start opening a shard. If that is already under way, update the log range only."""
        former = self.opening.get(partition)
        if former is not None and not former.given_up:
            former.log = log
            return
        self.opening[partition] = Opening(
            partition.partition, log, self._recovery, after=former, background=self._background
        )

    def started(self) -> dict[TopicPartition, int]:
        """Take the stores that are now open; return the offsets to read from.

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
            if opening.outdated:
                # The owner before may have shipped a snapshot, and trimmed the log, meanwhile.
                self._open(partition, opening.log)
                continue
            shard = OwnedShard(_opened(opening), opening.log, opening.log.committed)
            self.owned[partition] = shard
            why = _objection(opening.log, shard.store)
            if why is not None:  # the log has changed since the opening began
                self.replace(partition, why)
                continue
            starts[partition] = opening.log.start(shard.store.offset)
        self._report()
        return starts

    def replace(self, partition: TopicPartition, why: str) -> None:
        """Put an unusable store aside, and start opening another."""
        shard = self.owned.pop(partition)
        shard.store.close(flush=False)
        self._directories.put_aside(partition.partition, why)
        high = max(shard.log.high, shard.committed)
        self._open(partition, shard.log._replace(high=high, committed=shard.committed))

    @contextmanager
    def guarded(self, partition: TopicPartition) -> Iterator[None]:
        """Replace the shard's store if the body finds it damaged.

        Raises:
            StageError: the disk is full, or can't be read or written.
        """
        try:
            yield
        except StoreDamaged as error:
            offset = self.owned[partition].store.offset
            self._recovery.damaged(partition.partition, offset, str(error))
            self.replace(partition, str(error))
        except OSError as error:
            raise StageError(_refused(error)) from error

    def replayed(self, documents: int) -> None:
        """Count documents that were replayed without answers."""
        self._replayed += documents

    def idle(self) -> None:
        """Start flushes and snapshots that are due; remove from files what was forgotten."""
        for partition, shard in list(self.owned.items()):
            with self.guarded(partition):
                shard.store.flush_if_due()
                shard.store.purge_if_due()
                if self._shipper is not None:
                    self._shipper.ship_if_due(shard.store, partition.partition)
                    self._shipper.sweep_if_due(partition.partition)
                    self._shipper.look_if_due(partition.partition)
        if self._standby is not None and not self._background:
            self._standby.step(0.0)
        self._report()

    def _report(self) -> None:
        """Log the replays that go on."""
        now = self._clock()
        for partition, shard in self.owned.items():
            shard.report(partition.partition, now)

    def waiting(self) -> frozenset[TopicPartition]:
        """Return the owned partitions whose store isn't open yet."""
        return frozenset(p for p, opening in self.opening.items() if not opening.given_up)

    def status(self) -> Status:
        """Return which shards don't answer yet, and how far warm ones are behind. Thread-safe.

        Reads plain numbers only, and no store that the stage's thread may close.
        """
        states = {}
        moved = self._fetched + self._replayed
        for partition, opening in list(self.opening.items()):
            progress = opening.progress
            moved += progress.moved
            if not opening.given_up:
                states[partition.partition] = RestoreState(
                    progress.bytes_done, progress.bytes_total, opening.log.committed
                )
        for partition, shard in list(self.owned.items()):
            if shard.silent:
                remaining = shard.committed - shard.store.offset
                states[partition.partition] = RestoreState(remaining=remaining)
        return Status(states, moved, self._standby.lag() if self._standby is not None else {})

    def _let_go(self, partitions: frozenset[TopicPartition] | set[TopicPartition]) -> None:
        """Close these stores, even if closing one fails.

        Raises:
            StageError: a store can't write what it has in memory; the log still has it.
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
            _log.warning("closed a damaged store, which the next opening puts aside: %s", error)
        except OSError as error:
            raise StageError(_refused(error)) from error

    def close(self) -> None:
        """Release everything within a bounded time."""
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
    """Return why an open store can't continue from its offset; None if it can."""
    why = log.objection(store.offset)
    if why is None and not log.reaches(store.offset):
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
        f"the index can't be read or written: {error}. Check the disk's space, quota and"
        " permissions, then restart the worker: it continues from the last flush"
    )
