"""How long the oldest record has waited that a stage hasn't reached, from what is known cheaply.

No record is asked for. What was appended after the log was seen to end at some offset is younger
than that look, and what follows a record that was read is taken to be no older than it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from worker.bus import TopicPartition

_SHARE = 1 / 60
"""How far apart in time the looks are that are kept of a backlog, as a share of its age. An age is
too high by that at most, and a backlog of a day takes some hundred looks."""


class Ages:
    """The ages, in seconds, of what comes after a position in each input. For one thread."""

    def __init__(self) -> None:
        """Start without inputs."""
        self._inputs: dict[TopicPartition, _Input] = {}

    def read(self, place: TopicPartition, end: int, at: float) -> None:
        """Note that a record was read: the offset after it, and its timestamp in seconds."""
        known = self._inputs.get(place)
        if known is not None and known.read is None:
            known.read = end, at

    def look(
        self,
        positions: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        now: float,
    ) -> float:
        """Return the age of the oldest record after its input's position; 0 if there is none.

        ``ends`` are those of the logs, and have exactly the inputs there are; ``now`` is in seconds
        since the epoch. While nothing tells the age of an input's records, it is the time since the
        first look at that input.
        """
        before, self._inputs = self._inputs, {}
        oldest = 0.0
        for place, end in ends.items():
            known = self._inputs[place] = before.get(place) or _Input(now)
            oldest = max(oldest, known.age(positions[place], end, now))
        return oldest


class _Input:
    """What is known of one input.

    Attributes:
        read: a record that was read and that the position has not passed; see `Ages.read`.
    """

    __slots__ = ("_first", "_marks", "_since", "read")

    def __init__(self, now: float) -> None:
        self.read: tuple[int, float] | None = None
        self._first = now
        self._since: float | None = None
        self._marks: deque[tuple[int, float]] = deque()

    def age(self, position: int, end: int, now: float) -> float:
        if position >= end:
            self._since, self.read = now, None
            self._marks.clear()
            return 0.0
        marks = self._marks
        passed = []
        while marks and marks[0][0] <= position:
            passed.append(marks.popleft()[1])
        if self.read is not None and self.read[0] <= position:
            passed.append(min(self.read[1], now))
            self.read = None
        if passed:
            self._since = max(passed if self._since is None else [self._since, *passed])
        while marks and marks[-1][0] >= end:  # Seen to end here again; or the log was cut off.
            marks.pop()
        age = max(0.0, now - (self._first if self._since is None else self._since))
        if not marks or now - marks[-1][1] >= _SHARE * age:
            marks.append((end, now))
        return age
