"""What a rejected record says about itself, and the document that it is sent again as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from confluent_kafka import Message

from worker.admin.progress import Refusal
from worker.bus import UNREADABLE_HEADERS, Header, Outgoing, Record
from worker.bus.kafka.records import record_of
from worker.headers import REASON, SOURCE_OFFSET, SOURCE_PARTITION, SOURCE_TOPIC, without_own

__all__ = ["REDRIVEN", "Rejection"]

REDRIVEN = "neardup-redriven"
"""How many times a document was sent again."""

_UNKNOWN = "unknown"
_LONGEST_REASON = 64
_LONGEST_NUMBER = 18
"""Anybody may write headers. An offset has 19 digits at most, and Python refuses 4,301."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record of the rejected topic."""

    record: Record
    reason: str
    before: int
    """How often it was sent again already."""

    @classmethod
    def of(cls, message: Message) -> Self:
        """Read a message that is no error."""
        record = record_of(message)
        said = (_last(record.headers, REASON) or b"").decode(errors="replace")
        reason = said.partition(":")[0].strip()
        known = 0 < len(reason) <= _LONGEST_REASON and reason.isprintable()
        return cls(
            record,
            reason if known else _UNKNOWN,
            _number(_last(record.headers, REDRIVEN)) or 0,
        )

    @property
    def readable(self) -> bool:
        """Tell whether its headers could be read, and so can be sent."""
        return self.record.headers != UNREADABLE_HEADERS

    @property
    def size(self) -> int:
        """Count the bytes of key, value and headers."""
        record = self.record
        return (
            len(record.key or b"")
            + len(record.value or b"")
            + sum(len(name) + len(value or b"") for name, value in record.headers)
        )

    def document(self, topic: str, partitions: int) -> Outgoing:
        """Give it as it came, to the partition that it came from if that is known."""
        record = self.record
        headers = (*without_own(record.headers), (REDRIVEN, b"%d" % (self.before + 1)))
        number = None
        if _last(record.headers, SOURCE_TOPIC) == topic.encode():
            number = _number(_last(record.headers, SOURCE_PARTITION))
        if number is not None and number >= partitions:
            number = None
        # A record without a time has -1, which the port doesn't take.
        time = max(record.timestamp, 0)
        return Outgoing(topic, number, record.key, record.value, headers, time)

    def refusal(self, error: str) -> Refusal:
        """Say what it is, for those who ask why it was not sent."""
        headers = self.record.headers
        topic = (_last(headers, SOURCE_TOPIC) or b"").decode(errors="replace")
        partition, offset = (
            _number(_last(headers, name)) for name in (SOURCE_PARTITION, SOURCE_OFFSET)
        )
        source = f"{topic[:249]}[{partition}]@{offset}"
        if not topic.isprintable() or not topic or partition is None or offset is None:
            source = self.place
        return Refusal(self.reason, error, self.size, source)

    @property
    def place(self) -> str:
        """Name where it is."""
        return f"{self.record.topic}[{self.record.partition}]@{self.record.offset}"


def _last(headers: tuple[Header, ...], name: str) -> bytes | None:
    return next((value for key, value in reversed(headers) if key == name), None)


def _number(value: bytes | None) -> int | None:
    if value is None or len(value) > _LONGEST_NUMBER or not value.isdigit():
        return None
    return int(value)
