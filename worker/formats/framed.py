"""Values that a serializer with a schema registry has put behind five bytes of its own.

Confluent's wire format: https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

import struct

from worker.formats.unreadable import Unreadable

__all__ = ["refuse_framed"]

_HEAD = struct.Struct(">xI")
_MOST = 1 << 24
"""Ids of schemas are counted from 1. A larger number is most likely UTF-16."""


def refuse_framed(value: bytes) -> None:
    """Refuse a value that begins with a magic byte 0 and the id of a schema; no text does.

    Raises:
        Unreadable: it does.
    """
    if not value.startswith(b"\0") or len(value) <= _HEAD.size:
        return
    (schema,) = _HEAD.unpack_from(value)
    if not 0 < schema < _MOST:
        return
    json = value[_HEAD.size :].lstrip(b" \t\r\n").startswith((b"{", b"["))
    raise Unreadable(
        "schema-registry",
        "it looks like Confluent's wire format: magic byte 0 and schema id"
        f" {schema}, then {'JSON' if json else 'Avro or Protobuf'}. neardup reads no schemas:"
        " have the producer write plain JSON or text (StringSerializer), or convert the topic",
    )
