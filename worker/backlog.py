"""What a stage has to catch up on before others may rely on it."""

from __future__ import annotations

from collections.abc import Mapping

from worker.bus import TopicPartition

__all__ = ["Backlog"]


class Backlog:
    """What was there already when partitions were assigned.

    It is gone once it was read to where it ended when first looked at, and once the stage is
    done with what was read: *route* only is when all shards have answered.
    """

    def __init__(self, committed: Mapping[TopicPartition, int]) -> None:
        """Begin at the committed offsets of all that was assigned."""
        self._done = dict(committed)
        self._ends: dict[TopicPartition, int | None] = dict.fromkeys(committed)
        self._read: dict[TopicPartition, int] = {}

    def __bool__(self) -> bool:
        """Tell whether any of it is left."""
        return bool(self._ends or self._read)

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note how far the stage is done."""
        self._done.update(offsets)

    def look(
        self, following: Mapping[TopicPartition, int], lags: Mapping[TopicPartition, int]
    ) -> None:
        """Cross off what is dealt with; takes the next offsets, and how many are behind them."""
        for partition, lag in lags.items():
            if partition not in self._ends:
                continue
            at = following.get(partition, 0)
            end = self._ends[partition]
            if end is None:
                end = self._ends[partition] = at + lag
            if lag == 0 or at >= end:
                del self._ends[partition]
                self._read[partition] = at
        for partition, read in list(self._read.items()):
            if self._done.get(partition, read) >= read:
                del self._read[partition]
