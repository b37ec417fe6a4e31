"""The ownership of warm shards. The standby has them, and the stage may take one at any time.

A lock protects ownership only. It is never held during work on a store, the log or the disk, so
nothing waits for a standby.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from worker.bus import Record, TopicPartition
from worker.index.errors import HeaderMismatch, StoreDamaged, Unrecoverable
from worker.index.opening import Opening
from worker.index.recovery import LogRange, Recovery
from worker.index.store import BandStore

_log = logging.getLogger(__name__)

Warm = BandStore | Opening
"""A shard in transfer between the stage and the standby: open, or being opened."""


@dataclass(slots=True)
class WarmShard:
    """A shard that is kept warm.

    ``held`` are records that aren't applied yet, read ahead of the group. ``reading`` is whether
    more are read. Nothing is tried before the time ``not_before``, in seconds. While ``busy``, the
    standby's thread uses the store without the lock. Whoever takes the shard over meanwhile gets
    ``promised``, which receives the store when the use ends.
    """

    opening: Opening | None = None
    store: BandStore | None = None
    held: list[Record] = field(default_factory=list)
    reading: bool = False
    not_before: float = 0.0
    busy: bool = False
    promised: Opening | None = None

    def stop_reading(self) -> None:
        """Stop reading, and drop the records that are held."""
        self.reading = False
        self.held.clear()


class WarmShards:
    """The shards that a standby has now, by their seats."""

    def __init__(
        self, wanted: Iterable[TopicPartition], recovery: Recovery, *, background: bool
    ) -> None:
        """Take the shards to keep warm, and how to open them; none is warm yet."""
        self.wanted = frozenset(wanted)
        self._recovery = recovery
        self._background = background
        self._lock = threading.Lock()
        self._shards: dict[TopicPartition, WarmShard] = {}
        self._ending = False

    def get(self, partition: TopicPartition) -> WarmShard | None:
        """Return a shard; None if the standby doesn't have it."""
        return self._shards.get(partition)

    def all(self) -> list[tuple[TopicPartition, WarmShard]]:
        """Return all shards that the standby has now."""
        return list(self._shards.items())

    def hand_over(self, owned: Mapping[TopicPartition, LogRange]) -> dict[TopicPartition, Warm]:
        """Hand over the warm ones of these shards, which the stage owns now; keep all others warm.

        A shard whose store is in use is returned as an `Opening`, which is done when the use ends.
        """
        taken: dict[TopicPartition, Warm] = {}
        with self._lock:
            for partition, log in owned.items():
                shard = self._shards.pop(partition, None)
                warm = self._released(partition, shard, log) if shard is not None else None
                if warm is not None:
                    taken[partition] = warm
            for partition in self.wanted.difference(owned):
                self._shards.setdefault(partition, WarmShard())
        for partition, warm in taken.items():
            if isinstance(warm, BandStore):
                _log_warm(partition, warm)
        return taken

    def _released(self, partition: TopicPartition, shard: WarmShard, log: LogRange) -> Warm | None:
        """Release a shard at once or, while its store is in use, as a promise."""
        if shard.busy:
            shard.promised = self._opening(partition, log, begin=False)
            return shard.promised
        if shard.opening is not None:
            shard.opening.log = log
        return shard.store or shard.opening

    def _opening(self, partition: TopicPartition, log: LogRange, *, begin: bool) -> Opening:
        return Opening(
            partition.partition, log, self._recovery, background=self._background, begin=begin
        )

    def take(self, partition: TopicPartition, warm: Warm) -> bool:
        """Take a shard that the stage has lost; return False if it isn't wanted."""
        if partition not in self.wanted or self._ending:
            return False
        with self._lock:
            self._shards[partition] = (
                WarmShard(store=warm) if isinstance(warm, BandStore) else WarmShard(opening=warm)
            )
        return True

    def open(self, partition: TopicPartition, log: LogRange) -> None:
        """Start opening a shard, unless it is open or being opened."""
        with self._lock:
            shard = self._shards.get(partition)
            if shard is not None and shard.opening is None and shard.store is None:
                shard.opening = self._opening(partition, log, begin=True)

    def settle(self, partition: TopicPartition, retry_at: float) -> str | None:
        """Take the store of an opening that is done.

        Returns:
            Why the opening failed, if it did; the shard then rests until ``retry_at``.
        """
        with self._lock:
            shard = self._shards.get(partition)
            if shard is None or shard.opening is None or not shard.opening.done:
                return None
            opening, shard.opening = shard.opening, None
            try:
                shard.store = opening.result()
            except (OSError, HeaderMismatch, StoreDamaged, Unrecoverable) as error:
                shard.not_before = retry_at
                return str(error)
            return None

    @contextmanager
    def at_work(self, partition: TopicPartition) -> Iterator[WarmShard | None]:
        """Use a shard's store and directory exclusively; None if the standby has no open store.

        If the shard was taken over meanwhile, the new owner gets the store at the end.
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
                if promised is not None or self._ending:
                    shard.store = None
                else:
                    store = None
            if promised is not None:
                _keep_promise(partition, promised, store)
            elif store is not None:
                store.close(flush=False)

    def end(self) -> None:
        """Take no more shards; a store that is in use is closed when the use ends."""
        self._ending = True

    def close(self) -> None:
        """Close the warm stores, except those in use, and cancel openings."""
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
    """Hand the store to whoever took the shard over; if there is none, have another opened."""
    if store is None:
        promised.begin()
        return
    _log_warm(partition, store)
    promised.fulfil(store)


def _log_warm(partition: TopicPartition, store: BandStore) -> None:
    _log.info("shard %d was kept warm, at offset %d", partition.partition, store.offset)
