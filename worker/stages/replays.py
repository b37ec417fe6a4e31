"""Shards that read what was answered before they were taken on, and what is said of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from worker.bus import TopicPartition
from worker.snapshots import LogRange
from worker.store import BandStore

__all__ = ["Replays", "Shard"]

_log = logging.getLogger(__name__)

_TELL_SECONDS = 10.0


@dataclass(slots=True)
class Shard:
    """An open store, and how far the group had come when it was taken on."""

    store: BandStore
    log: LogRange
    committed: int

    @property
    def silent(self) -> bool:
        """Tell whether what it reads was answered before."""
        return self.store.offset < self.committed


@dataclass(slots=True)
class _Replay:
    offset: int
    documents: int
    began: float
    told: float


class Replays:
    """Says where each replay begins, how it goes on, and that it has ended."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Know of none; ``clock`` gives seconds."""
        self._clock = clock
        self._replays: dict[TopicPartition, _Replay] = {}

    def follow(self, owned: Mapping[TopicPartition, Shard]) -> None:
        """Look at the shards there are now."""
        now = self._clock()
        for partition in self._replays.keys() - owned.keys():
            del self._replays[partition]
        for partition, shard in owned.items():
            replay = self._replays.get(partition)
            if replay is not None:
                self._go_on(partition, shard, replay, now)
            elif shard.silent:
                self._begin(partition, shard, now)

    def _begin(self, partition: TopicPartition, shard: Shard, now: float) -> None:
        store = shard.store
        self._replays[partition] = _Replay(store.offset, store.documents, now, now)
        _log.info(
            "shard %d replays its log from offset %d to %d before it answers",
            partition.partition,
            store.offset,
            shard.committed,
        )

    def _go_on(self, partition: TopicPartition, shard: Shard, replay: _Replay, now: float) -> None:
        if shard.silent and now - replay.told < _TELL_SECONDS:
            return
        replay.told = now
        _log.info(
            "shard %d %s: %d documents in %.1f s, at offset %d of %d",
            partition.partition,
            "goes on replaying" if shard.silent else "answers",
            shard.store.documents - replay.documents,
            now - replay.began,
            shard.store.offset,
            shard.committed,
        )
        if not shard.silent:
            del self._replays[partition]
