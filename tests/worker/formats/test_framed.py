"""Values behind the five bytes of a serializer with a schema registry are named as such."""

import struct

import pytest

from worker.bus import Record
from worker.formats.base import DocumentFormat, DocumentOptions
from worker.formats.json import JsonFormat
from worker.formats.text import TextFormat
from worker.formats.unreadable import Unreadable

FORMATS = [JsonFormat(DocumentOptions()), TextFormat(DocumentOptions())]


def framed(schema: int, value: bytes) -> Record:
    """Give a record as such a serializer writes it."""
    return Record("documents", 0, 5, 1, b"key", struct.pack(">bI", 0, schema) + value)


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    ("schema", "value", "then"),
    [
        (1, b'{"id":"a","text":"some text"}', "JSON"),
        (100_023, b'{"id":"a","text":"some text"}', "JSON"),
        (7, b"\x02a\x12some text", "Avro or Protobuf"),
        (7, b"\x00\n\x01a\x12\tsome text", "Avro or Protobuf"),
    ],
)
def test_it_is_named(format_: DocumentFormat, schema: int, value: bytes, then: str) -> None:
    with pytest.raises(Unreadable) as raised:
        format_.read(framed(schema, value))
    assert raised.value.code == "schema-registry"
    assert f"magic byte 0 and schema id {schema}, then {then}." in raised.value.detail
    assert "set documents.format to registry, and registry.url" in raised.value.detail


@pytest.mark.parametrize("value", ["", '{"id":"a","text":"some text"}'])
def test_other_zeros_are_not(value: str) -> None:
    """UTF-16 begins with one, too."""
    record = Record("documents", 0, 5, 1, b"key", b"\0" + value.encode("utf-16-be")[1:])
    with pytest.raises(Unreadable) as raised:
        FORMATS[0].read(record)
    assert raised.value.code == "not-json"
