"""The names of the headers that neardup adds, and of the JSON members that it inserts."""

from __future__ import annotations

from worker.bus import UNREADABLE_HEADERS, Header, Outgoing, Record

PREFIX = "neardup-"
VERDICT = "neardup-verdict"
SEQUENCE = "neardup-sequence"
SOURCE = "neardup-source"
"""``topic-partition-offset`` of the document in ``documents``."""
MATCHES = "neardup-matches"
FIRST = "neardup-first"
"""The earliest of the published matches: ``{"id": …, "sequence": …}``."""

REASON = "neardup-error-reason"
STAGE = "neardup-error-stage"
SOURCE_TOPIC = "neardup-error-topic"
SOURCE_PARTITION = "neardup-error-partition"
SOURCE_OFFSET = "neardup-error-offset"
"""Named after Kafka Connect's ``__connect.errors.*``, values in UTF-8."""
PAYLOAD = "neardup-error-payload"
"""Set on a rejected record that was published in part: what was left out, and where it is."""

REDRIVEN = "neardup-redriven"
"""The number of times that a rejected document was sent again. Whoever writes documents can set it:
nothing but a count depends on it."""
FORGET = "neardup-forget"
"""On a tombstone: the id that it forgets, whatever its key. Whoever writes documents can set it, as
they can send a tombstone with any key."""
CORRECTION = "neardup-correction"
"""On a record without a value: what a person corrects; see `worker.corrections.request`. Whoever
writes documents can set it, as they can send a tombstone."""
ALLOWED_BY = "neardup-allowed-by"
"""On a document that is unique because a person allowed its text: the id of the allowance."""

_LONGEST_NUMBER = 18
"""Headers may be forged. An offset has at most 19 digits; Python refuses to parse 4,301."""

_LEFT_OUT = b"left out, since this topic refuses it; it is at the source position"
_ALL_LEFT_OUT = b"left out with key and headers, since this topic refuses them; see the source"

NOT_JUDGED = (
    "not-judged: it was written where fingerprint had read already; the topic was truncated and has"
    " grown again"
)
"""The reason of a document at an offset that another document had."""

REFUSED = "refused-frame"
"""The code of a document whose frame, or the answer to it, no worker can carry out."""

DUPLICATE_OF = "duplicate_of"
"""The member with what `MATCHES` has."""
DUPLICATE_FIRST = "duplicate_first"
"""The member with what `FIRST` has."""


def rejection(record: Record, stage: str, reason: str) -> tuple[Header, ...]:
    """Return the record's own headers, then those with the reason and the source position."""
    return (
        *_passed_on(record.headers),
        (REASON, reason.encode()),
        (STAGE, stage.encode()),
        (SOURCE_TOPIC, record.topic.encode()),
        (SOURCE_PARTITION, b"%d" % record.partition),
        (SOURCE_OFFSET, b"%d" % record.offset),
    )


def reduced_rejection(record: Outgoing) -> Outgoing | None:
    """Return a rejected record without its payload or, if that is gone, without key and headers.

    The headers with the reason and the source position stay. Returns None if nothing else is left,
    and for all other records.
    """
    if all(name != REASON for name, _ in record.headers):
        return None
    own = tuple(header for header in record.headers if header[0].startswith(PREFIX))
    if record.value is not None:
        headers = (*record.headers, (PAYLOAD, _LEFT_OUT))
        return record._replace(value=None, headers=headers)
    if record.key is None and record.timestamp is None and len(own) == len(record.headers):
        return None
    kept = tuple(header for header in own if header[0] != PAYLOAD)
    return record._replace(key=None, timestamp=None, headers=(*kept, (PAYLOAD, _ALL_LEFT_OUT)))


def without_own(headers: tuple[Header, ...]) -> tuple[Header, ...]:
    """Return the headers without those that only neardup may write."""
    if not headers:
        return headers
    return tuple(header for header in headers if not header[0].startswith(PREFIX))


def corrects(headers: tuple[Header, ...]) -> bool:
    """Return whether these are the headers of a correction that forgets no document."""
    names = {name for name, _ in headers}
    return CORRECTION in names and FORGET not in names


def header(record: Record, name: str) -> bytes | None:
    """Return the value of a header; of several with the name, the last one's."""
    return next((value for key, value in reversed(record.headers) if key == name), None)


def number(value: bytes | None) -> int | None:
    """Return the number in a header's value; None if there is none."""
    if value is None or len(value) > _LONGEST_NUMBER or not value.isdigit():
        return None
    return int(value)


def _passed_on(headers: tuple[Header, ...]) -> tuple[Header, ...]:
    """Return what *rejected* keeps of a document's headers: all but those with our prefix.

    Marks of unreadable ones stay in their places. The last `REDRIVEN` stays if it is a number.
    """
    if not headers:
        return headers
    kept = [
        header
        for header in headers
        if header in UNREADABLE_HEADERS or not header[0].startswith(PREFIX)
    ]
    counts = [header for header in headers if header[0] == REDRIVEN]
    return (*kept, *(header for header in counts[-1:] if number(header[1])))
