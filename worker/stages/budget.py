"""What waits in *route* costs: estimates of CPython's objects, on 64 bits.

Payloads are the smaller part of many short documents, so everything that is kept for a
record or a frame is charged, rounded to what malloc gives.
"""

from __future__ import annotations

from worker.bus import Record

__all__ = ["answer_cost", "record_cost"]

_RECORD_BYTES = 112 + 2 * 32 + 80 + 2 * 48 + 8 + 40
"""The tuple, offset and time, the topic's name (each message brings its own), the heads of key and
value, and its place and its cost in the queues."""
_HEADER_BYTES = 72 + 8 + 2 * 56
"""The pair, its place among the headers, and the heads of name and value."""
_HEADERS_BYTES = 56
_FRAME_BYTES = 1_200
"""The struct, its numbers, and the heads of a dozen arrays."""


def record_cost(record: Record) -> int:
    """Return about how many bytes a record takes while it waits."""
    key, value, headers = record[4:]
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
    """Return about how many bytes a decoded answer takes while it waits; it stays packed."""
    return _FRAME_BYTES + len(record.value or b"")
