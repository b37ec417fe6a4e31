"""The wire format of Confluent's serializers: which schema a key or a value has.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format

A value begins with byte 0 and the id of its schema, 4 bytes; or a header has byte 1 and the GUID of
the schema, 16 bytes. `whole` moves the latter in front of the value, so both are bytes that a value
begins with: its *mark*.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from worker.bus import Header, Record, RecordBatch
from worker.formats.unreadable import Unreadable

__all__ = [
    "id_of",
    "mark_of",
    "mark_or_none",
    "named",
    "whole",
    "whole_batch",
]

_LENGTHS: Final = {0: 5, 1: 17}
"""The bytes of a mark by its first one, the version."""
_MOST: Final = (1 << 31) - 1
"""Ids are positive numbers of Java."""
_KEY: Final = "__key_schema_id"
_VALUE: Final = "__value_schema_id"
_HEADERS: Final = frozenset((_KEY, _VALUE))


def mark_or_none(value: bytes | None) -> bytes | None:
    """Return the mark of a key or a value; None if it has none."""
    length = _LENGTHS.get(value[0]) if value else None
    return None if value is None or length is None or len(value) < length else value[:length]


def mark_of(value: bytes) -> bytes:
    """Return the mark of a key or a value.

    Raises:
        Unreadable: it has none.
    """
    mark = mark_or_none(value)
    if mark is None:
        raise Unreadable(
            "no-schema",
            "no schema id: neither byte 0 and 4 bytes in front, nor a GUID in a header; the first"
            f" bytes are {value[:8].hex(' ') or 'missing'}",
        )
    return mark


def id_of(mark: bytes) -> int | str:
    """Return the id that a mark has, or the GUID as text.

    Raises:
        Unreadable: no schema can have this id.
    """
    if len(mark) > _LENGTHS[0]:
        return str(UUID(bytes=mark[1:]))
    number = int.from_bytes(mark[1:], "big")
    if not 0 < number <= _MOST:
        raise Unreadable("no-schema", f"{number} is not the id of a schema")
    return number


def named(ident: int | str) -> str:
    """Return what an id is called in messages."""
    return f"schema {ident}" if isinstance(ident, int) else f"the schema with GUID {ident}"


def whole(record: Record) -> Record:
    """Return a record with the marks that are in its headers in front of its key and its value."""
    if _HEADERS.isdisjoint(name for name, _ in record.headers):
        return record
    return record._replace(
        key=_marked(record.key, record.headers, _KEY),
        value=_marked(record.value, record.headers, _VALUE),
        headers=tuple(one for one in record.headers if one[0] not in _HEADERS),
    )


def whole_batch(batch: RecordBatch) -> RecordBatch:
    """Return what `whole` returns of each record."""
    if batch.headers is None or _HEADERS.isdisjoint(_names(batch.headers)):
        return batch
    records = list(map(whole, batch))
    return RecordBatch(
        batch.place,
        batch.offsets,
        batch.timestamps,
        [one.key for one in records],
        [one.value for one in records],
        [one.headers for one in records],
    )


def _names(headers: Iterable[tuple[Header, ...]]) -> Iterable[str]:
    return (name for some in headers for name, _ in some)


def _marked(value: bytes | None, headers: tuple[Header, ...], name: str) -> bytes | None:
    """Return a value behind the mark in the last header of a name; itself if there is none."""
    found = [given for own, given in headers if own == name]
    if value is None or not found:
        return value
    mark = found[-1] or b""
    # Behind the GUID is which message of a Protobuf schema it is.
    return mark + value if mark[:1] == b"\1" and len(mark) >= _LENGTHS[1] else value
