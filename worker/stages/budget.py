"""The memory of what waits in *route*: estimated sizes of CPython's objects, on 64 bits.

For short documents the payload is the smaller part, so everything that is kept for a record or a
frame counts, rounded to malloc's sizes.
"""

from __future__ import annotations

from worker.bus import Record

__all__ = ["answer_cost", "record_cost"]

_RECORD_BYTES = 112 + 2 * 32 + 80 + 2 * 48 + 8 + 40
"""The tuple, offset and time, the topic's name (each message has its own copy), the object headers
of key and value, and the entries for record and cost in the queues."""
_HEADER_BYTES = 72 + 8 + 2 * 56
"""The pair, its entry among the headers, and the object headers of name and value."""
_HEADERS_BYTES = 56
_FRAME_BYTES = 2_000
"""The struct, its numbers, and the object headers of a dozen arrays."""


def record_cost(record: Record) -> int:
    """Return about how many bytes a waiting record takes."""
    key, value, headers = record[4:7]
    cost = _RECORD_BYTES
    if value:
        cost += len(value)
    if key:
        cost += len(key)
    if headers:
        cost += _HEADERS_BYTES + _HEADER_BYTES * len(headers)
        for name, header in headers:
            cost += len(name) + len(header or b"")
    return cost


def answer_cost(record: Record) -> int:
    """Return about how many bytes a waiting answer takes; its columns stay packed."""
    return _FRAME_BYTES + len(record.value or b"")
