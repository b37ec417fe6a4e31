"""The names of the headers that neardup adds, and of the member that it splices in."""

from __future__ import annotations

from worker.bus import Header, Outgoing, Record

__all__ = [
    "DUPLICATE_OF",
    "MATCHES",
    "PAYLOAD",
    "PREFIX",
    "REASON",
    "SEQUENCE",
    "SOURCE",
    "SOURCE_OFFSET",
    "SOURCE_PARTITION",
    "SOURCE_TOPIC",
    "STAGE",
    "VERDICT",
    "reduced_rejection",
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
PAYLOAD = "neardup-error-payload"
"""Of a rejected record that is without what it had: says what is missing, and where that is."""

_LEFT_OUT = b"left out, since this topic refuses it; it is at the source position"
_ALL_LEFT_OUT = b"left out with key and headers, since this topic refuses them; see the source"

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


def reduced_rejection(record: Outgoing) -> Outgoing | None:
    """Give a rejected record without its payload, then without its key and headers too; or None.

    What says why and from where it was rejected stays.
    """
    own = tuple(header for header in record.headers if header[0].startswith(PREFIX))
    if record.value is not None:
        headers = (*record.headers, (PAYLOAD, _LEFT_OUT))
        return record._replace(value=None, headers=headers)
    if record.key is None and record.timestamp is None and len(own) == len(record.headers):
        return None
    kept = tuple(header for header in own if header[0] != PAYLOAD)
    return record._replace(key=None, timestamp=None, headers=(*kept, (PAYLOAD, _ALL_LEFT_OUT)))


def without_own(headers: tuple[Header, ...]) -> tuple[Header, ...]:
    """Give the headers without those that neardup has added."""
    return tuple(header for header in headers if not header[0].startswith(PREFIX))
