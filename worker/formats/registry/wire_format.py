"""The wire format of Confluent's serializers: which schema a key or a value has.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format

A value begins with byte 0 and the id of its schema, 4 bytes, or 8 of Apicurio's older serializers;
or a header has byte 1 and the GUID of the schema, 16 bytes. `whole` moves the latter in front of
the value, so all are bytes that a value begins with: its *mark*.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from worker.bus import Header, Record, RecordBatch
from worker.formats.unreadable import GLUE, Unreadable, has_glue_header

Ident = int | str
"""The id of a schema, or its GUID."""

ID_BYTES: Final = 4
_GUID: Final = 17
"""The bytes of a mark with a GUID."""
_MOST: Final = (1 << 31) - 1, (1 << 63) - 1
"""Ids are positive numbers of Java: of 4 bytes, and of 8."""
_KEY: Final = "__key_schema_id"
_VALUE: Final = "__value_schema_id"
_HEADERS: Final = frozenset((_KEY, _VALUE))


def mark_or_none(value: bytes | None, id_bytes: int = ID_BYTES) -> bytes | None:
    """Return the mark of a key or a value; None if it has none."""
    if not value or value[0] > 1:
        return None
    length = _GUID if value[0] else 1 + id_bytes
    return None if len(value) < length else value[:length]


def mark_of(value: bytes, id_bytes: int = ID_BYTES) -> bytes:
    """Return the mark of a key or a value.

    Raises:
        Unreadable: it has none.
    """
    mark = mark_or_none(value, id_bytes)
    if mark is not None:
        return mark
    if has_glue_header(value):
        raise Unreadable("no-schema", GLUE)
    raise Unreadable(
        "no-schema",
        f"no schema id: neither byte 0 and {id_bytes} bytes in front, nor a GUID in a header; the"
        f" first bytes are {value[:8].hex(' ') or 'missing'}",
    )


def id_of(mark: bytes) -> Ident:
    """Return the id that a mark has, or the GUID as text.

    Raises:
        Unreadable: no schema can have this id.
    """
    if mark[0]:
        return str(UUID(bytes=mark[1:]))
    number = int.from_bytes(mark[1:], "big")
    short = len(mark) == 1 + ID_BYTES
    if number == 0 and short:
        raise Unreadable(
            "no-schema",
            "0 is not the id of a schema. Apicurio's older serializers write ids of 8 bytes: if"
            " these are theirs, set registry.id_bytes to 8",
        )
    if not 0 < number <= _MOST[not short]:
        raise Unreadable("no-schema", f"{number} is not the id of a schema")
    return number


def named(ident: Ident) -> str:
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
    return mark + value if mark[:1] == b"\1" and len(mark) >= _GUID else value
