"""A rejected record's headers, and the document as which it is sent again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from worker.admin.redrive.progress import Refusal
from worker.bus import UNREADABLE_HEADERS, Header, Outgoing, Record
from worker.wire.headers import (
    REASON,
    REDRIVEN,
    SOURCE_OFFSET,
    SOURCE_PARTITION,
    SOURCE_TOPIC,
    number,
    without_own,
)

_UNKNOWN = "unknown"
_LONGEST_REASON = 64


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record of the rejected topic."""

    record: Record
    reason: str
    before: int
    """The number of times it was sent again already."""

    @classmethod
    def of(cls, record: Record) -> Self:
        """Parse a record's headers."""
        header = (_last(record.headers, REASON) or b"").decode(errors="replace")
        reason = header.partition(":")[0].strip()
        known = 0 < len(reason) <= _LONGEST_REASON and reason.isprintable()
        return cls(
            record,
            reason if known else _UNKNOWN,
            number(_last(record.headers, REDRIVEN)) or 0,
        )

    @property
    def readable(self) -> bool:
        """Return whether all its headers could be read, and so can be sent."""
        return self.record.headers != UNREADABLE_HEADERS

    @property
    def ours(self) -> bool:
        """Return whether neardup has written it: it has a reason, and the document's position."""
        headers = self.record.headers
        position = (number(_last(headers, name)) for name in (SOURCE_PARTITION, SOURCE_OFFSET))
        known = self.reason != _UNKNOWN and _last(headers, SOURCE_TOPIC) is not None
        return known and None not in position

    @property
    def size(self) -> int:
        """Return the size of key, value and headers in bytes."""
        record = self.record
        return (
            len(record.key or b"")
            + len(record.value or b"")
            + sum(len(name) + len(value or b"") for name, value in record.headers)
        )

    def document(self, topic: str, partitions: int) -> Outgoing:
        """Return the original document, addressed to its original partition if that is known."""
        record = self.record
        headers = (*without_own(record.headers), (REDRIVEN, b"%d" % (self.before + 1)))
        partition = None
        if _last(record.headers, SOURCE_TOPIC) == topic.encode():
            partition = number(_last(record.headers, SOURCE_PARTITION))
        if partition is not None and partition >= partitions:
            partition = None
        # A record without a timestamp has -1, which the port doesn't accept.
        time = max(record.timestamp, 0)
        return Outgoing(topic, partition, record.key, record.value, headers, time)

    def refusal(self, error: str) -> Refusal:
        """Return why it was not sent, with Kafka's name of the error."""
        headers = self.record.headers
        topic = (_last(headers, SOURCE_TOPIC) or b"").decode(errors="replace")
        partition, offset = (
            number(_last(headers, name)) for name in (SOURCE_PARTITION, SOURCE_OFFSET)
        )
        source = f"{topic[:249]}[{partition}]@{offset}"
        if not topic.isprintable() or not topic or partition is None or offset is None:
            source = self.position
        return Refusal(self.reason, error, self.size, source)

    @property
    def position(self) -> str:
        """Return ``topic[partition]@offset``."""
        return f"{self.record.topic}[{self.record.partition}]@{self.record.offset}"


def _last(headers: tuple[Header, ...], name: str) -> bytes | None:
    return next((value for key, value in reversed(headers) if key == name), None)
