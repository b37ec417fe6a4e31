"""What is said of records that a topic refuses, however often they are sent."""

from __future__ import annotations

from collections.abc import Sequence

from worker.bus import Outgoing
from worker.wire.headers import SOURCE, SOURCE_OFFSET, SOURCE_PARTITION, SOURCE_TOPIC

__all__ = ["described"]

_KEYLESS = "INVALID_RECORD"
"""How brokers refuse a record without a key for a compacted topic; it has other causes, too."""


def described(why: str, refused: Sequence[Outgoing], error: str) -> str:
    """Return why a topic refuses records, with the first or largest of them, and what to do.

    ``error`` is the log's own name for the error. A topic refuses whole batches, so records that
    it would take may be among them.
    """
    keyless = [record for record in refused if record.key is None] if error == _KEYLESS else []
    if keyless:
        one = keyless[0]
        more = f" ({len(keyless) - 1} more in this batch)" if len(keyless) > 1 else ""
        return (
            f"{why}. {one.topic} takes no record without a key, as a compacted topic does:"
            f" {_source(one)} has none{more}. Set cleanup.policy=delete on {one.topic}, or give all"
            " documents keys, and start the worker again"
        )
    if not refused:
        return why
    largest = max(refused, key=lambda record: record.size)
    return (
        f"{why}. {largest.topic} refuses, for one, {_source(largest)}: {largest.size} bytes with"
        f" headers; see max.message.bytes and the bounds of timestamps of {largest.topic}"
    )


def _source(record: Outgoing) -> str:
    """Return which document a record is about, as far as its headers tell."""
    found = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
    if SOURCE in found:
        topic, partition, offset = found[SOURCE].rsplit("-", 2)
    elif SOURCE_OFFSET in found:
        topic, partition = found.get(SOURCE_TOPIC, "?"), found.get(SOURCE_PARTITION, "?")
        offset = found[SOURCE_OFFSET]
    else:
        return f"a record for {record.topic}"
    return f"the document {topic}[{partition}] offset {offset}"
