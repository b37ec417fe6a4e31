"""A loop's knowledge of its inputs: what has to be caught up on, which are quiet, and how old.

No record is asked for to tell an age. What was appended after the log was seen to end at some
offset is younger than that look, and what follows a record that was read is taken to be no older
than it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from worker.bus import TopicPartition

_SHARE = 1 / 60
"""The time between two looks that are kept of a backlog, as a share of its age. An age is too high
by that at most, and a backlog of a day takes some hundred looks."""


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
    """The looks at one input, and the record that was read last.

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
