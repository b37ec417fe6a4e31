"""The records that a stage must catch up on after an assignment."""

from __future__ import annotations

from collections.abc import Mapping

from worker.bus import TopicPartition

__all__ = ["Backlog"]


class Backlog:
    """The records that were already waiting when partitions were assigned.

    It is empty once they were read, up to the ends at the first look, and the stage is done with
    them. *route* is done with a document only when all shards have answered.
    """

    def __init__(self, committed: Mapping[TopicPartition, int]) -> None:
        """Begin at the committed offsets of all assigned partitions."""
        self._done = dict(committed)
        self._ends: dict[TopicPartition, int | None] = dict.fromkeys(committed)
        self._read: dict[TopicPartition, int] = {}

    def __bool__(self) -> bool:
        """Return whether any of the backlog is left."""
        return bool(self._ends or self._read)

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Record the offsets that the stage has committed."""
        self._done.update(offsets)

    def look(
        self, following: Mapping[TopicPartition, int], lags: Mapping[TopicPartition, int]
    ) -> None:
        """Remove what is done; take the next offset and the lag (records) of each partition."""
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
