"""Which inputs have gone quiet, so that what was read behind their last record can be settled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from worker.bus import TopicPartition

__all__ = ["QuietInputs"]


class QuietInputs:
    """Follows where each input is read next; asked about once a second.

    An input is settled once when it goes quiet. While it brings no records, only markers and
    aborted ones can follow, and it is then left alone for a while.
    """

    def __init__(self, resting_seconds: float) -> None:
        """Take for how long an input that brings nothing is left alone once it was settled."""
        self._resting = resting_seconds
        self._seen: dict[TopicPartition, int] = {}
        self._settled: dict[TopicPartition, tuple[int, float]] = {}

    def look(self, following: Mapping[TopicPartition, int]) -> frozenset[TopicPartition]:
        """Name the inputs that have brought nothing since the last look."""
        seen, self._seen = self._seen, dict(following)
        return frozenset(place for place, offset in seen.items() if offset == following.get(place))

    def due(
        self,
        quiet: Iterable[TopicPartition],
        following: Mapping[TopicPartition, int],
        now: float,
    ) -> frozenset[TopicPartition]:
        """Name those that have brought records since they were settled, or were so long ago."""
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
        """Note what is being settled."""
        self._settled |= {place: (following[place], now) for place in places}

    def forget(self) -> None:
        """Begin anew: all inputs are read from elsewhere."""
        self._seen = {}
