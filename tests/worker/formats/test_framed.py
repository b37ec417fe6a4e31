"""Values behind the five bytes of a serializer with a schema registry are named as such."""

import struct
from uuid import UUID

import pytest

from worker.bus import Record
from worker.formats.base import DocumentFormat, DocumentOptions
from worker.formats.choice import TextFormat
from worker.formats.json import JsonFormat
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


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("compression", [0, 5])
def test_the_header_of_glues_serializers_is_named(
    format_: DocumentFormat, compression: int
) -> None:
    value = bytes((3, compression)) + UUID("89791762-2336-4186-9674-299b90a802e2").bytes + b"x"
    with pytest.raises(Unreadable, match=r"^schema-registry: .* AWS Glue's schema registry"):
        format_.read(Record("documents", 0, 5, 1, b"key", value))


@pytest.mark.parametrize("value", ["", '{"id":"a","text":"some text"}'])
def test_other_zeros_are_not(value: str) -> None:
    """UTF-16 begins with one, too."""
    record = Record("documents", 0, 5, 1, b"key", b"\0" + value.encode("utf-16-be")[1:])
    with pytest.raises(Unreadable) as raised:
        FORMATS[0].read(record)
    assert raised.value.code == "not-json"
