"""The memory of what waits in *route*: estimated sizes of CPython's objects, on 64 bits.

For short documents the payload is the smaller part, so everything that is kept for a record or a
frame counts, rounded to malloc's sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

from worker.bus import Header, Record, RecordBatch

_RECORD_BYTES = 112 + 2 * 32 + 80 + 2 * 48 + 8 + 40
"""The tuple, offset and time, the topic's name (each message has its own copy), the object headers
of key and value, and the entries for record and cost in the queues."""
_ROW_BYTES = 2 * 8 + 3 * 8 + 2 * 48
"""The same of a record in columns: offset and time, three entries in lists, two object headers."""
_BATCH_BYTES = 104 + 64 + 2 * 112 + 2 * 72 + 56 + 40
"""What all of a batch's records have in common: the object with its place, two arrays, three lists,
and the entry in the queue."""
_HEADER_BYTES = 72 + 8 + 2 * 56
"""The pair, its entry among the headers, and the object headers of name and value."""
_HEADERS_BYTES = 56
_FRAME_BYTES = 2_000
"""The struct, its numbers, and the object headers of a dozen arrays."""


def record_cost(record: Record) -> int:
    """Return about how many bytes a waiting record takes."""
    key, value, headers = record[4:7]
    return _RECORD_BYTES + len(value or b"") + len(key or b"") + _headers_cost(headers)


def batch_cost(batch: RecordBatch) -> int:
    """Return about how many bytes waiting records take in columns."""
    rows = _ROW_BYTES * len(batch) + batch.size
    return _BATCH_BYTES + rows + sum(map(_headers_cost, batch.headers or ()))


def row_costs(batch: RecordBatch) -> list[int]:
    """Return about how many bytes each of some waiting records takes, without their batch's own."""
    headers = repeat(()) if batch.headers is None else batch.headers
    return [
        _ROW_BYTES + len(value or b"") + len(key or b"") + _headers_cost(own)
        for value, key, own in zip(batch.values, batch.keys, headers, strict=False)
    ]


def _headers_cost(headers: Sequence[Header]) -> int:
    if not headers:
        return 0
    cost = _HEADERS_BYTES + _HEADER_BYTES * len(headers)
    for name, value in headers:
        cost += len(name) + len(value or b"")
    return cost


def answer_cost(record: Record) -> int:
    """Return about how many bytes a waiting answer takes; its columns stay packed."""
    return _FRAME_BYTES + len(record.value or b"")
