"""What a loop knows of its inputs: what has to be caught up on, and which are quiet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from worker.bus import TopicPartition


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


class QuietInputs:
    """Follows the next offset of each input; called about once a second.

    An input is settled (its position is committed) once when it goes quiet. While it has no
    records, only markers and aborted records can follow, so it is then left alone for a while.
    """

    def __init__(self, resting_seconds: float) -> None:
        """Take how many seconds a settled input is left alone while it stays quiet."""
        self._resting = resting_seconds
        self._seen: dict[TopicPartition, int] = {}
        self._settled: dict[TopicPartition, tuple[int, float]] = {}

    def look(self, following: Mapping[TopicPartition, int]) -> frozenset[TopicPartition]:
        """Return the inputs without new records since the last call."""
        seen, self._seen = self._seen, dict(following)
        return frozenset(place for place, offset in seen.items() if offset == following.get(place))

    def due(
        self,
        quiet: Iterable[TopicPartition],
        following: Mapping[TopicPartition, int],
        now: float,
    ) -> frozenset[TopicPartition]:
        """Return the quiet inputs that had records since they were settled, or rested long enough.

        ``now`` is in seconds.
        """
        never = (-1, 0.0)
        return frozenset(
            place
            for place in quiet
            if self._settled.get(place, never)[0] != following[place]
            or now - self._settled[place][1] >= self._resting
        )

    def settled(
        self,
        places: Iterable[TopicPartition],
        following: Mapping[TopicPartition, int],
        now: float,
    ) -> None:
        """Record that inputs are being settled."""
        self._settled |= {place: (following[place], now) for place in places}

    def forget(self) -> None:
        """Forget the offsets seen, after an assignment."""
        self._seen = {}
