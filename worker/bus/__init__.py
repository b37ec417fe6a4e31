"""The port between the stages' loop and a log, and its two adapters."""

from __future__ import annotations

from worker.bus.port import (
    UNREADABLE_HEADERS,
    Aborted,
    Bus,
    BusError,
    Denied,
    Fenced,
    Header,
    LogReader,
    LogWriter,
    Member,
    OffsetOutOfRange,
    OutcomeUnknown,
    Outgoing,
    PartitionUnreadable,
    Polled,
    Record,
    Refused,
    TopicPartition,
    TopicRecreated,
    Unanswered,
)

__all__ = [
    "UNREADABLE_HEADERS",
    "Aborted",
    "Bus",
    "BusError",
    "Denied",
    "Fenced",
    "Header",
    "LogReader",
    "LogWriter",
    "Member",
    "OffsetOutOfRange",
    "OutcomeUnknown",
    "Outgoing",
    "PartitionUnreadable",
    "Polled",
    "Record",
    "Refused",
    "TopicPartition",
    "TopicRecreated",
    "Unanswered",
]
