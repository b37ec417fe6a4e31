"""Which schema a record has, and what its key is."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.worker.formats.registry.parts import (
    GUID,
    Shelf,
    avro,
    avro_value,
    document_file,
    made,
    mark,
    proto,
    read,
    record,
)
from worker.bus import Away, Denied, RecordBatch
from worker.formats.registry.client import Fetched
from worker.formats.unreadable import Unreadable

LONG = {"type": "record", "name": "Key", "fields": [{"name": "number", "type": "long"}]}
NAME = {"type": "record", "name": "Name", "fields": [{"name": "name", "type": "string"}]}
VALUE = {"type": "record", "name": "D", "fields": [{"name": "text", "type": "string"}]}
TEXT = avro_value({"text": "some text"}, VALUE)


def shelf() -> Shelf:
    found = Shelf()
    found.schemas = {
        1: avro(VALUE),
        2: avro("string"),
        3: avro("long"),
        4: avro(LONG),
        5: avro("bytes"),
        6: Fetched("JSON", '{"type": "object"}', []),
        7: proto(document_file(("id", 3))),
        8: avro([LONG, NAME]),
        GUID: avro(VALUE),
    }
    return found


def test_json_with_a_schema_is_read() -> None:
    documents = made(shelf(), text_fields=("a.text", "more[]"))
    value = mark(6) + b'{"id": 5, "a": {"text": "x"}, "more": ["y", "z"], "other": [1]}'
    assert read(documents, record(value))[:2] == (b"5", "x\ny\nz")
    assert not documents.can_splice(value)
    for wrong, why in (
        (b"[]", "not-an-object"),
        (b"{", "not-json"),
        (b'{"id":' + b"[" * 99_999, "too-deep"),
    ):
        with pytest.raises(Unreadable, match=why):
            read(documents, record(mark(6) + wrong))


def test_a_guid_in_a_header_names_the_schema() -> None:
    one = record(TEXT[5:], b"k", [("__value_schema_id", mark(GUID))])
    documents = made(shelf())
    assert read(documents, one).text == "some text"
    whole = documents.whole(one)
    assert documents.excerpt(whole.value or b"") == "some text"


@pytest.mark.parametrize(
    ("value", "headers", "why"),
    [
        (b'{"text": "a"}', [], "no-schema: no schema id: .* first bytes are 7b 22 74"),
        (b"", [], "no-schema: .* first bytes are missing"),
        (b"\0\0\0\0", [], "no-schema: no schema id"),
        (mark(99) + b"a", [], "no-schema: the registry doesn't have schema 99"),
        (b"\0\xff\xff\xff\xff\x02a", [], "no-schema: 4294967295 is not the id of a schema"),
        (b"\0\0\0\0\0\x02a", [], r"no-schema: 0 is not .* Apicurio.* set registry\.id_bytes to 8"),
        (b"\3\5" + UUID(GUID).bytes + b"\x02a", [], "no-schema: .* AWS Glue's schema registry"),
        (b"\3\0" + UUID(GUID).bytes, [], "no-schema: .* AWS Glue's schema registry"),
        (b"\3\0" + bytes(16), [], "no-schema: no schema id"),
        (b"a", [("__value_schema_id", b"\1short")], "no-schema: no schema id"),
        (b"a", [("__value_schema_id", b"")], "no-schema: no schema id"),
    ],
)
def test_a_value_without_a_schema_is_rejected(
    value: bytes, headers: list[tuple[str, bytes]], why: str
) -> None:
    with pytest.raises(Unreadable, match=why):
        read(made(shelf()), record(value, b"k", headers))


@pytest.mark.parametrize(
    ("key", "ident"),
    [
        (avro_value("some key", "string", 2), b"some key"),
        (avro_value("tab\t", "string", 2), b"hex:74616209"),
        (avro_value(-5, "long", 3), b"-5"),
        (avro_value({"number": 77}, LONG, 4), b"77"),
        (mark(8) + b"\2\2a", b"a"),
        (mark(6) + b'{"id": "json"}', b"json"),
        (mark(6) + b'"text"', b"text"),
        (mark(7) + b"\0\x08\x07", b"7"),
    ],
)
def test_a_key_with_a_schema_is_an_id(key: bytes, ident: bytes) -> None:
    documents = made(shelf(), key="registry")
    assert read(documents, record(TEXT, key)).id == ident
    assert documents.forgotten(record(None, key)) == ident
    assert documents.identify(TEXT, key) == ident
    named = record(TEXT[5:], key[5:], [("__value_schema_id", mark(GUID))])
    with pytest.raises(Unreadable, match="no-schema: no schema id"):
        read(documents, named)


def test_a_key_may_have_its_guid_in_a_header() -> None:
    here = shelf()
    here.schemas[GUID] = avro("string")
    key = avro_value("some key", "string", 2)[5:]
    one = record(TEXT, key, [("__key_schema_id", mark(GUID))])
    assert read(made(here, key="registry"), one).id == b"some key"


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (b"plain", "no-schema: no schema id"),
        (avro_value(b"x", "bytes", 5), "bad-id: the key is bytes, not a text or a number"),
        (mark(6) + b'{"a": 1, "b": 2}', "bad-id: the key is null"),
        (mark(3), "bad-id: the key can't be decoded: not-by-schema"),
    ],
)
def test_other_keys_are_no_ids(key: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read(made(shelf(), key="registry"), record(TEXT, key))


def test_without_a_key_the_position_is_the_id() -> None:
    assert read(made(shelf(), key="registry"), record(TEXT)).id == b"docs-3-17"


def test_who_only_looks_does_without_a_registry_that_is_away() -> None:
    here = shelf()
    here.error = Away("away")
    documents = made(here)
    assert documents.excerpt(b"\0\0\0\0\1abc") == "\0\0\0\0\1abc"
    assert documents.identify(TEXT, b"k") is None
    asked = len(here.asked)
    with pytest.raises(Unreadable, match="no-schema: its schema wasn't met before"):
        documents.fields(TEXT)
    assert len(here.asked) == asked
    for error in (Away("away"), Denied("denied")):
        here.error = error
        documents = made(here)
        with pytest.raises(type(error)):
            documents.read(record(TEXT))


def test_a_batch_is_prepared_with_its_keys_and_headers() -> None:
    here = shelf()
    documents = made(here, key="registry")
    records = [
        record(TEXT, avro_value("a", "string", 2)),
        record(TEXT, avro_value("b", "string", 2)),
        record(TEXT[5:], None, [("__value_schema_id", mark(GUID))]),
        record(None, avro_value(7, "long", 3)),
        record(b"none", None),
    ]
    documents.prepare(RecordBatch.of(records))
    assert sorted(map(str, here.asked)) == sorted(["1", "2", "3", GUID])
    here.error = Away("away")
    assert [one is None for one in documents.read_all(*RecordBatch.of(records)).texts] == [
        False, False, False, True, True,
    ]  # fmt: skip
