"""Retention by time: deletes whole segments of a partition's log, by Kafka's rules."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple

_WEEK_MS: Final = 7 * 24 * 3_600_000


class Retention(NamedTuple):
    """How long a topic keeps records, and when it begins a new segment, in milliseconds.

    These are ``retention.ms`` and ``segment.ms``, with Kafka's default for the latter.
    """

    ms: int
    segment_ms: int = _WEEK_MS


@dataclass(slots=True)
class _Segment:
    """A run of batches: its first offset, and the timestamps that decide when it goes."""

    base: int
    first: int
    """The largest timestamp of its first batch."""
    largest: int


class Segments:
    """The segments of one partition's log.

    Kafka 4.3's rules (``UnifiedLog.deletableSegments``, ``LogSegment.shouldRoll``):

    - Only a write begins a new segment: one whose largest timestamp is more than
      ``segment_ms`` after that of the segment's first batch. A partition without writes
      keeps its last segment open.
    - A segment has expired when its largest timestamp is more than ``ms`` ago. Timestamps
      of aborted records and of transaction markers count. Segments are deleted from the
      oldest on, up to the first that has not expired.
    - The last segment is no exception. When it expires with all others, the log begins a
      new one, and so starts at its end: after the marker of its last transaction.

    One thing is simpler: segments that reach past the last stable offset are never deleted.
    Kafka would delete them, but no transaction stays open for as long as records are kept.
    """

    __slots__ = ("_retention", "_segments")

    def __init__(self, retention: Retention) -> None:
        """Start without segments."""
        self._retention = retention
        self._segments: deque[_Segment] = deque()

    def append(self, base: int, timestamp: int) -> None:
        """Record a batch by its first offset and its largest timestamp."""
        last = self._segments[-1] if self._segments else None
        if last is None or timestamp - last.first > self._retention.segment_ms:
            self._segments.append(_Segment(base, timestamp, timestamp))
        else:
            last.largest = max(last.largest, timestamp)

    def expire(self, now: int, start: int, stable: int, end: int) -> int:
        """Drop the segments that expire by ``now``; return the log's new start.

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
