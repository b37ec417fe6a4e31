"""The latest duplicates and rejections, read as they are committed."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from shlex import quote
from typing import NamedTuple

import msgspec

from worker.admin.redrive.rejection import Rejection as Rejected
from worker.bus import Bus, BusError, LogReader, OffsetOutOfRange, Record, TopicPartition
from worker.closing import Closing
from worker.documents.published import Duplicate, duplicate_of, ident_of
from worker.formats.choice import document_format
from worker.settings.model import Settings
from worker.topology import Topology
from worker.visible import visible
from worker.wire.headers import REASON, SOURCE_OFFSET, SOURCE_PARTITION, header, number

_KEPT = 2_000
"""How many duplicates are kept."""
_BEFORE = 300
"""How many offsets of each partition are read that were there before the server."""
_REASONS = 100
_RECORDS = 500
_BYTES = 4 << 20
_REASON_CHARACTERS = 300
_UNKNOWN = "unknown"


class Duplicates(msgspec.Struct, frozen=True):
    """Duplicates, the latest first; ``next`` is the cursor of those before them."""

    duplicates: list[Duplicate]
    next: str | None


class Rejection(msgspec.Struct, frozen=True):
    """The documents that were rejected for a reason, as far as this server has read them.

    ``detail``, ``source``, ``time`` and ``text`` are those of the latest. ``command`` sends them
    through the filter again.
    """

    reason: str
    count: int
    detail: str
    source: str
    time: int
    text: str
    command: str


class Since(NamedTuple):
    """What has come since a number: some of the latest, how many in all, and the next number."""

    duplicates: list[Duplicate]
    of: int
    number: int


@dataclass(slots=True)
class _Reason:
    count: int
    latest: Record
    detail: str


class Feed(Closing):
    """Reads *duplicate* and *rejected* from near their ends; `poll` belongs to one thread."""

    def __init__(self, settings: Settings, topology: Topology, bus: Bus) -> None:
        """Take what to read."""
        self._topology = topology
        self._bus = bus
        self._documents = document_format(settings)
        self._lock = threading.Lock()
        self._kept: deque[Duplicate] = deque(maxlen=_KEPT)
        self._number = 0
        self._rejected: dict[str, _Reason] = {}
        self._reader: LogReader | None = None
        self._at: dict[TopicPartition, int] = {}
        self.trouble: str | None = None

    def poll(self, timeout: float) -> None:
        """Read what has come; wait for something up to ``timeout`` seconds.

        What can't be read is noted in ``trouble``, and tried again at the next call.
        """
        try:
            reader = self._reader or self._begin()
            records = reader.read(_RECORDS, _BYTES, timeout)
            for place in self._at:
                self._at[place] = reader.position(place) or self._at[place]
        except OffsetOutOfRange as error:  # It is gone: go on where the log begins, or ends.
            self._at[error.partition] = at = max(error.low, min(error.position, error.high))
            if self._reader is not None:
                self._reader.start(error.partition, at)
            return
        except BusError as error:
            self.trouble = visible(str(error))
            self.close()
            return
        self.trouble = None
        for record in sorted(records, key=lambda one: one.timestamp):
            self._take(record)

    def _begin(self) -> LogReader:
        topics = (self._topology.duplicate, self._topology.rejected)
        reader = self._bus.log_reader(self._topology.group("serve"), topics)
        self._reader = reader
        counts = self._bus.partitions(topics)
        for topic in topics:
            for partition in range(counts[topic] or 0):
                place = TopicPartition(topic, partition)
                low, high = reader.watermarks(place)
                self._at.setdefault(place, max(low, high - _BEFORE))
                reader.start(place, self._at[place])
        return reader

    def _take(self, record: Record) -> None:
        if record.topic == self._topology.rejected:
            self._reject(record)
            return
        found = duplicate_of(self._documents, record)
        if found is not None:
            with self._lock:
                self._kept.append(found)
                self._number += 1

    def _reject(self, record: Record) -> None:
        said = (header(record, REASON) or b"")[:_REASON_CHARACTERS].decode(errors="replace")
        reason = Rejected.of(record).reason
        with self._lock:
            known = self._rejected.get(reason)
            if known is None and len(self._rejected) >= _REASONS:
                reason = _UNKNOWN
                known = self._rejected.get(reason)
            self._rejected[reason] = _Reason((known.count if known else 0) + 1, record, said)

    def since(self, number: int, most: int) -> Since:
        """Return the latest of what has come since ``number``, the latest first."""
        with self._lock:
            count = self._number - number
            latest = list(islice(reversed(self._kept), max(0, min(count, most))))
            return Since(latest, count, self._number)

    @property
    def number(self) -> int:
        """Return how many have come."""
        return self._number

    def page(self, cursor: int | None, limit: int) -> Duplicates:
        """Return duplicates before a cursor, or the latest."""
        with self._lock:
            end = self._number if cursor is None else min(cursor, self._number)
            oldest = self._number - len(self._kept)
            skipped = self._number - end
            found = list(islice(reversed(self._kept), skipped, skipped + limit))
        before = end - len(found)
        return Duplicates(found, str(before) if found and before > oldest else None)

    def rejections(self, forgotten: Callable[[str], bool]) -> list[Rejection]:
        """Return the reasons of rejections, the most frequent first.

        No text is shown of a document whose id is ``forgotten``.
        """
        with self._lock:
            known = sorted(self._rejected.items(), key=lambda one: -one[1].count)
        return [self._rejection(reason, one, forgotten) for reason, one in known]

    def _rejection(self, reason: str, one: _Reason, forgotten: Callable[[str], bool]) -> Rejection:
        record = one.latest
        value = self._documents.whole(record).value or b""
        if forgotten(ident_of(self._documents, record)):
            value = b""
        place = [number(header(record, name)) for name in (SOURCE_PARTITION, SOURCE_OFFSET)]
        return Rejection(
            reason,
            one.count,
            visible(one.detail),
            "-".join("?" if part is None else str(part) for part in place),
            record.timestamp,
            self._documents.excerpt(value[: 64 << 10])[:400],
            self.command(reason),
        )

    def command(self, reason: str) -> str:
        """Return the command that sends documents with a reason through the filter again."""
        app = self._topology.app
        return f"neardup redrive --app {app}" + (
            "" if reason == _UNKNOWN else f" --reason {quote(reason)}"
        )

    def close(self) -> None:
        """Close the reader; a later `poll` makes a new one, which goes on where this one was."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
