"""The names of the headers that neardup adds, and of the member that it splices in."""

from __future__ import annotations

from worker.bus import Header, Record

__all__ = [
    "DUPLICATE_OF",
    "MATCHES",
    "PREFIX",
    "REASON",
    "SEQUENCE",
    "SOURCE",
    "SOURCE_OFFSET",
    "SOURCE_PARTITION",
    "SOURCE_TOPIC",
    "STAGE",
    "VERDICT",
    "rejection",
    "without_own",
]

PREFIX = "neardup-"
VERDICT = "neardup-verdict"
SEQUENCE = "neardup-sequence"
SOURCE = "neardup-source"
"""``topic-partition-offset`` of the document among ``documents``."""
MATCHES = "neardup-matches"

REASON = "neardup-error-reason"
STAGE = "neardup-error-stage"
SOURCE_TOPIC = "neardup-error-topic"
SOURCE_PARTITION = "neardup-error-partition"
SOURCE_OFFSET = "neardup-error-offset"
"""Named after Kafka Connect's ``__connect.errors.*``, values in UTF-8."""

DUPLICATE_OF = "duplicate_of"


def rejection(record: Record, stage: str, reason: str) -> tuple[Header, ...]:
    """Give the record's headers, then those that say why and from where it was rejected."""
    return (
        *record.headers,
        (REASON, reason.encode()),
        (STAGE, stage.encode()),
        (SOURCE_TOPIC, record.topic.encode()),
        (SOURCE_PARTITION, b"%d" % record.partition),
        (SOURCE_OFFSET, b"%d" % record.offset),
    )


def without_own(headers: tuple[Header, ...]) -> tuple[Header, ...]:
    """Give the headers without those that neardup has added."""
    return tuple(header for header in headers if not header[0].startswith(PREFIX))
