"""What time deletes from a partition's log: whole segments, by Kafka's rules."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple

__all__ = ["Retention", "Segments"]

_WEEK_MS: Final = 7 * 24 * 3_600_000


class Retention(NamedTuple):
    """How long a topic keeps records, and when it begins a new segment, in milliseconds.

    These are ``retention.ms`` and ``segment.ms``; the latter has Kafka's default.
    """

    ms: int
    segment_ms: int = _WEEK_MS


@dataclass(slots=True)
class _Segment:
    """A run of batches: its first offset, and the timestamps that decide its fate."""

    base: int
    first: int
    """The largest timestamp of its first batch."""
    largest: int


class Segments:
    """The segments of one partition's log.

    Kafka 4.3's rules (``UnifiedLog.deletableSegments``, ``LogSegment.shouldRoll``):

    - Only a write begins a new segment: one whose largest timestamp is more than
      ``segment_ms`` after that of the segment's first batch. A partition that nobody writes
      to keeps its last segment open.
    - A segment has expired when its largest timestamp is more than ``ms`` ago. Timestamps
      of aborted records and of transaction markers count. Segments are deleted from the
      oldest on, up to the first that has not expired.
    - The last segment is no exception. When it expires with all others, the log begins a
      new one, and so starts at its end: behind the marker of its last transaction.

    One thing is simpler: what begins after the last stable offset is never deleted. Kafka
    would, but no transaction is open for as long as records are kept.
    """

    __slots__ = ("_retention", "_segments")

    def __init__(self, retention: Retention) -> None:
        """Begin with no segment."""
        self._retention = retention
        self._segments: deque[_Segment] = deque()

    def append(self, base: int, timestamp: int) -> None:
        """Note a batch by its first offset and its largest timestamp."""
        last = self._segments[-1] if self._segments else None
        if last is None or timestamp - last.first > self._retention.segment_ms:
            self._segments.append(_Segment(base, timestamp, timestamp))
        else:
            last.largest = max(last.largest, timestamp)

    def expire(self, now: int, start: int, stable: int, end: int) -> int:
        """Forget the segments that are deleted at ``now``; return where the log starts then.

        ``start``, ``stable`` and ``end`` are those of the log. Segments before its start
        are deleted whatever their age.
        """
        while self._segments:
            after = self._segments[1].base if len(self._segments) > 1 else end
            expired = now - self._segments[0].largest > self._retention.ms
            if after > stable or not (expired or after <= start):
                break
            self._segments.popleft()
            start = max(start, after)
        return start
