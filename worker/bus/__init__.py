"""The port between the stages' loop and a log, and its two adapters."""

from __future__ import annotations

from worker.bus.port import (
    UNREADABLE_HEADERS,
    Aborted,
    Bus,
    BusError,
    Fenced,
    Header,
    Member,
    OffsetOutOfRange,
    OutcomeUnknown,
    Outgoing,
    PartitionUnreadable,
    Polled,
    Reader,
    Record,
    Refused,
    TopicPartition,
    TopicRecreated,
)

__all__ = [
    "UNREADABLE_HEADERS",
    "Aborted",
    "Bus",
    "BusError",
    "Fenced",
    "Header",
    "Member",
    "OffsetOutOfRange",
    "OutcomeUnknown",
    "Outgoing",
    "PartitionUnreadable",
    "Polled",
    "Reader",
    "Record",
    "Refused",
    "TopicPartition",
    "TopicRecreated",
]
