"""The error of a document that can't be read, and what it is found by.

What each reason tells about the settings is in `CAUSES`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, Literal

_HEAD = struct.Struct(">xI")
_GLUE_BYTES: Final = 18
_MOST = 1 << 24
"""Ids of schemas are counted from 1. A larger number is most likely UTF-16."""

Cause = Literal["configuration", "time", "content"]
"""``configuration``: the documents have another format, other fields, or fields of other types than
the settings say. ``content``: whoever writes a web page can bring it about, or a single odd record;
so any number of these tells nothing about the settings. ``time``: of the configuration as long as
no document has a time that can be read; otherwise of the content."""

NULL_TEXT: Final = "null-text"
"""The code of a record whose text is null, or in an object that is null: a change feed's delete."""

CAUSES: Final[Mapping[str, Cause]] = {
    "not-json": "configuration",
    "not-an-object": "configuration",
    "schema-registry": "configuration",
    "no-schema": "configuration",
    "not-by-schema": "configuration",
    "no-text": "configuration",
    "no-id": "configuration",
    "text-wrong-type": "configuration",
    "id-wrong-type": "configuration",
    "time-wrong-type": "configuration",
    "bad-time": "time",
    "bad-correction": "content",
    "bad-headers": "content",
    "bad-id": "configuration",
    "empty-text": "content",
    "invalid-utf8": "content",
    "null-text": "content",
    "text-too-long": "content",
    "too-deep": "content",
    "too-large": "content",
}
"""Every code."""


class Unreadable(Exception):
    """A document can't be read: a short code, and what was found."""

    def __init__(self, code: str, detail: str) -> None:
        """Keep the code in an attribute: it is the label of a metric."""
        self.code = code
        self.detail = detail
        super().__init__(f"{code}: {detail}")


class Deleted(Unreadable):
    """A record has no text because its document was deleted; ``id`` is that of the document."""

    def __init__(self, ident: bytes, detail: str) -> None:
        """Keep the id; ``detail`` says what is null."""
        self.id = ident
        super().__init__(NULL_TEXT, detail)


def utf8(value: bytes) -> str:
    """Return bytes decoded as UTF-8.

    Raises:
        Unreadable: they are not valid UTF-8.
    """
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Unreadable("invalid-utf8", f"{error.reason} at byte {error.start}") from None


def kind_of(value: object) -> str:
    """Return the JSON name of a value's type."""
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if value is None or isinstance(value, bytes):
        return "null" if value is None else "bytes"
    return "an array" if isinstance(value, list) else "an object"


GLUE: Final = (
    "it has the header of AWS Glue's schema registry (byte 3, compression, a UUID), which neardup"
    " doesn't read: publish with serializers of Confluent's wire format"
)


def has_glue_header(value: bytes) -> bool:
    """Return whether a value begins with the header of AWS Glue's serializers.

    That is the version, 3, the compression, 0 or 5, and a random UUID:
    https://github.com/awslabs/aws-glue-schema-registry
    """
    return (
        value[:2] in {b"\3\0", b"\3\5"}
        and len(value) >= _GLUE_BYTES
        and value[8] >> 4 == 4  # noqa: PLR2004 -- the version of random UUIDs
        and value[10] >> 6 == 2  # noqa: PLR2004 -- their variant
    )


def refuse_framed(value: bytes) -> None:
    """Refuse a value that begins with a magic byte 0 and the id of a schema; no text does.

    This is Confluent's wire format:
    https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format

    Raises:
        Unreadable: it does.
    """
    if has_glue_header(value):
        raise Unreadable("schema-registry", GLUE)
    if not value.startswith(b"\0") or len(value) <= _HEAD.size:
        return
    (schema,) = _HEAD.unpack_from(value)
    if not 0 < schema < _MOST:
        return
    json = value[_HEAD.size :].lstrip(b" \t\r\n").startswith((b"{", b"["))
    raise Unreadable(
        "schema-registry",
        "it looks like Confluent's wire format: magic byte 0 and schema id"
        f" {schema}, then {'JSON' if json else 'Avro or Protobuf'}. To read it, set"
        " documents.format to registry, and registry.url",
    )
