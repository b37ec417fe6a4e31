"""Finds quiet inputs, so that positions past their last record can be committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from worker.bus import TopicPartition

__all__ = ["QuietInputs"]


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
