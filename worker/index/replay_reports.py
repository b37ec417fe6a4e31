"""Logs the progress of shards that replay frames that were already answered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from worker.bus import TopicPartition
from worker.index.owned_shard import OwnedShard

__all__ = ["ReplayReports"]

_log = logging.getLogger(__name__)

_LOG_SECONDS = 10.0


@dataclass(slots=True)
class _Replay:
    offset: int
    documents: int
    began: float
    logged: float


class ReplayReports:
    """Logs the start, the progress and the end of each replay."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin without replays; ``clock`` returns seconds."""
        self._clock = clock
        self._replays: dict[TopicPartition, _Replay] = {}

    def follow(self, owned: Mapping[TopicPartition, OwnedShard]) -> None:
        """Log the progress of the shards that are owned now."""
        now = self._clock()
        for partition in self._replays.keys() - owned.keys():
            del self._replays[partition]
        for partition, shard in owned.items():
            replay = self._replays.get(partition)
            if replay is not None:
                self._report(partition, shard, replay, now)
            elif shard.silent:
                self._begin(partition, shard, now)

    def _begin(self, partition: TopicPartition, shard: OwnedShard, now: float) -> None:
        store = shard.store
        self._replays[partition] = _Replay(store.offset, store.documents, now, now)
        _log.info(
            "shard %d replays its log from offset %d to %d before it answers",
            partition.partition,
            store.offset,
            shard.committed,
        )

    def _report(
        self, partition: TopicPartition, shard: OwnedShard, replay: _Replay, now: float
    ) -> None:
        if shard.silent and now - replay.logged < _LOG_SECONDS:
            return
        replay.logged = now
        _log.info(
            "shard %d %s: %d documents in %.1f s, at offset %d of %d",
            partition.partition,
            "is replaying" if shard.silent else "answers",
            shard.store.documents - replay.documents,
            now - replay.began,
            shard.store.offset,
            shard.committed,
        )
        if not shard.silent:
            del self._replays[partition]
