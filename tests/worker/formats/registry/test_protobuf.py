"""Documents in Protobuf."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st
from psutil import Process

from tests.worker.formats.registry.parts import (
    GUID,
    TIME,
    Shelf,
    avro,
    avro_value,
    document_file,
    made,
    mark,
    proto,
    read,
    record,
    serialized,
    value_of,
)
from worker.bus import RecordBatch
from worker.formats.base import Document, DocumentOptions
from worker.formats.registry.client import Fetched
from worker.formats.registry.documents import RegistryFormat
from worker.formats.registry.protobuf import compiled
from worker.formats.unreadable import Unreadable

STRING, LONG, MESSAGE = Field.TYPE_STRING, Field.TYPE_INT64, Field.TYPE_MESSAGE
PLAIN = document_file(("id", STRING), ("text", STRING), ("rank", LONG))
FIRST = b"\0"


def shelf(file: FileDescriptorProto = PLAIN) -> Shelf:
    found = Shelf()
    found.schemas[1] = proto(file)
    return found


def nested() -> FileDescriptorProto:
    """Return a file whose document has parts, a moment, wrappers and a map."""
    file = document_file(("plain", STRING))
    file.dependency.extend(["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"])
    document = file.message_type[0]
    part = document.nested_type.add(name="Part")
    part.field.add(name="text", number=1, type=STRING, label=Field.LABEL_OPTIONAL)
    part.field.add(name="id", number=2, type=LONG, label=Field.LABEL_OPTIONAL)
    entry = document.nested_type.add(name="LabelsEntry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), 1):
        entry.field.add(name=name, number=number, type=STRING, label=Field.LABEL_OPTIONAL)
    own = ".docs.Document."
    for number, (name, kind, label) in enumerate(
        [
            ("parts", f"{own}Part", Field.LABEL_REPEATED),
            ("head", f"{own}Part", Field.LABEL_OPTIONAL),
            ("at", ".google.protobuf.Timestamp", Field.LABEL_OPTIONAL),
            ("title", ".google.protobuf.StringValue", Field.LABEL_OPTIONAL),
            ("labels", f"{own}LabelsEntry", Field.LABEL_REPEATED),
        ],
        2,
    ):
        document.field.add(name=name, number=number, type=MESSAGE, type_name=kind, label=label)
    return file


def test_a_document_is_read() -> None:
    documents = made(shelf())
    value = mark(1) + FIRST + value_of(PLAIN, id="a", text="some text", rank=4)
    assert read(documents, record(value)) == Document(b"a", "some text", TIME)
    assert documents.excerpt(value) == "some text"
    assert documents.identify(value) == b"a"
    assert documents.fields(value) == ["id", "text", "rank"]
    assert not documents.can_splice(value)


def test_what_is_not_set_is_absent_but_a_text_is_empty() -> None:
    documents = made(shelf())
    value = mark(1) + FIRST + value_of(PLAIN, text="some text")
    assert read(documents, record(value, b"k")).id == b"k"
    with pytest.raises(Unreadable, match="empty-text"):
        read(documents, record(mark(1) + FIRST))


def test_paths_lead_into_messages() -> None:
    file = nested()
    documents = made(
        shelf(file),
        id_field="head.id",
        text_fields=("title", "parts[].text", "labels.x"),
        time_field="at",
    )
    value = value_of(
        file,
        parts=[{"text": "one"}, {"text": "two", "id": 2}],
        head={"id": 7},
        at=datetime(1980, 5, 6, tzinfo=UTC),
        title={"value": "Title"},
        labels={"x": "label"},
    )
    found = read(documents, record(mark(1) + FIRST + value))
    assert found == Document(b"7", "Title\none\ntwo\nlabel", 326_419_200_000)


def test_the_message_is_the_one_with_the_index() -> None:
    file = document_file(("id", STRING), message="Other")
    outer = file.message_type.add(name="Outer")
    inner = outer.nested_type.add(name="Document")
    inner.field.add(name="text", number=1, type=STRING, label=Field.LABEL_OPTIONAL)
    value = value_of(file, "Outer.Document", text="within")
    documents = made(shelf(file))
    assert read(documents, record(mark(1) + b"\x04\x02\0" + value, b"k")).text == "within"
    for wrong in (b"\x04\x02\x02", b"\x02\x06", b"\x7f", b"\x04", b"\xff\xff\xff\xff\xff\xff", b""):
        with pytest.raises(Unreadable, match="not-by-schema"):
            read(documents, record(mark(1) + wrong, b"k"))


def test_the_guid_and_the_index_may_be_in_a_header() -> None:
    here = shelf()
    here.schemas[GUID] = here.schemas[1]
    value = value_of(PLAIN, id="a", text="some text")
    one = record(value, headers=[("__value_schema_id", mark(GUID) + FIRST), ("other", b"x")])
    assert read(made(here), one).text == "some text"


def test_files_import_others() -> None:
    imported = document_file(("name", STRING), message="Person")
    imported.name = "person.proto"
    file = document_file(("text", STRING))
    file.dependency.append("person.proto")
    file.message_type[0].field.add(
        name="by", number=9, type=MESSAGE, type_name=".docs.Person", label=Field.LABEL_OPTIONAL
    )
    here = Shelf()
    here.schemas[1] = proto(file, ("person.proto", serialized(imported)))
    # A text, and field 9 with the person: its field 1 is the name.
    value = b"\x0a\x01t\x4a\x05\x0a\x03Ada"
    documents = made(here, id_field="by.name")
    assert read(documents, record(mark(1) + FIRST + value)).id == b"Ada"


def test_a_schema_may_be_text() -> None:
    person = 'syntax = "proto3"; package p; message Person { string name = 1; }'
    text = """
        syntax = "proto3";
        import "p/person.proto";
        import "google/protobuf/wrappers.proto";
        message Document { p.Person by = 1; google.protobuf.StringValue text = 2; }
    """
    here = Shelf()
    here.schemas[1] = Fetched("PROTOBUF", text, [("p/person.proto", person)])
    documents = made(here, id_field="by.name")
    value = mark(1) + FIRST + b"\x0a\x05\x0a\x03Ada\x12\x03\x0a\x01t"
    assert read(documents, record(value))[:2] == (b"Ada", "t")


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        ("message {", "a.proto", "protoc: value.proto:1:"),
        ('syntax = "proto3";', "../a.proto", "imports ../a.proto, which is no name of a file"),
        ('syntax = "proto3";', "/a.proto", "imports /a.proto, which is no name of a file"),
    ],
)
def test_a_text_that_is_no_schema_is_named(text: str, name: str, why: str) -> None:
    here = Shelf()
    here.schemas[1] = Fetched("PROTOBUF", text, [(name, "")])
    with pytest.raises(Unreadable, match=f"no-schema: schema 1 can't be used: .*{why}"):
        read(made(here), record(mark(1) + FIRST))


def test_a_schema_that_is_none_is_named() -> None:
    here = shelf()
    missing = document_file(("text", MESSAGE))
    missing.dependency.append("elsewhere.proto")
    missing.message_type[0].field[0].type_name = ".elsewhere.Text"
    here.schemas |= {2: Fetched("PROTOBUF", "AAAA", []), 3: proto(missing)}
    documents = made(here)
    for ident, why in ((2, "no file's descriptor in base64"), (3, "elsewhere.proto")):
        with pytest.raises(Unreadable, match=f"no-schema: schema {ident} can't be used: .*{why}"):
            read(documents, record(mark(ident) + FIRST))


def test_depth_and_moments_end_in_a_rejection() -> None:
    file = document_file(("text", STRING))
    file.message_type[0].field.add(
        name="next", number=2, type=MESSAGE, type_name=".docs.Document", label=Field.LABEL_OPTIONAL
    )
    deep = b""
    for _ in range(2_000):
        size, length = len(deep), b""
        while size > 0x7F:
            size, length = size >> 7, length + bytes([size & 0x7F | 0x80])
        deep = b"\x12" + length + bytes([size]) + deep
    with pytest.raises(Unreadable, match="not-by-schema"):
        read(made(shelf(file), text_fields=("text", "next.text")), record(mark(1) + FIRST + deep))
    beyond = value_of(nested(), plain="t", at={"seconds": 1 << 40})
    documents = made(shelf(nested()), text_fields=("plain",), time_field="at")
    with pytest.raises(Unreadable, match="not-by-schema"):
        read(documents, record(mark(1) + FIRST + beyond))


IMPORTS = [
    ("google/protobuf/timestamp.proto", "google.protobuf.Timestamp other = 9;"),
    ("google/type/date.proto", "google.type.Date other = 9;"),
    ("google/type/localized_text.proto", "google.type.LocalizedText more = 9;"),
    ("google/rpc/status.proto", "google.rpc.Status other = 9;"),
    ("confluent/meta.proto", 'string other = 9 [(confluent.field_meta) = {doc: "x"}];'),
    ("confluent/type/decimal.proto", "confluent.type.Decimal other = 9;"),
]


@pytest.mark.parametrize(("imported", "field"), IMPORTS)
def test_files_that_every_client_has_need_not_be_registered(imported: str, field: str) -> None:
    text = f'syntax = "proto3"; package docs; import "{imported}"; message Document {{ string id = 1; string text = 2; {field} }}'  # noqa: E501
    compiled_main, _ = compiled(text, [])
    here = Shelf()
    here.schemas = {
        number: Fetched("PROTOBUF", schema, [])
        for number, schema in enumerate((text, compiled_main), 1)
    }
    documents = made(here, text_fields=("text", "more.text"))
    value = FIRST + b"\x0a\x01a\x12\x01t" + (b"\x4a\x03\x0a\x01u" if "more" in field else b"")
    for ident in here.schemas:
        found = read(documents, record(mark(ident) + value))
        assert (found.id, found.text) == (b"a", "t\nu" if "more" in field else "t")


def test_an_import_that_no_needed_field_takes_may_be_missing() -> None:
    file = document_file(("id", STRING), ("text", STRING), ("other", MESSAGE))
    file.dependency.append("elsewhere.proto")
    file.message_type[0].field[2].type_name = ".elsewhere.Other"
    here = Shelf()
    here.schemas[1] = proto(file)
    value = mark(1) + FIRST + b"\x0a\x01a\x12\x01t\x1a\x02\x08\x01"
    documents = made(here)
    assert read(documents, record(value)).text == "t"
    assert documents.fields(value) == ["id", "text", "other"]


def test_choices_are_read_and_told_from_what_is_not_set() -> None:
    file = document_file(("number", LONG), ("id", STRING), ("rest", STRING), ("text", STRING))
    message = file.message_type[0]
    for name in ("first", "second"):
        message.oneof_decl.add(name=name)
    for field, index in zip(message.field, (0, 1, 1, 0), strict=True):
        field.oneof_index = index
    documents = made(shelf(file))
    value = value_of(file, id="a", text="t")
    assert read(documents, record(mark(1) + FIRST + value, b"k")).id == b"a"
    value = value_of(file, rest="r", text="t")
    assert read(documents, record(mark(1) + FIRST + value, b"k")).id == b"k"


def test_a_message_takes_room_for_what_is_needed_only() -> None:
    """With all of its fields, 200 kB of empty messages would take gigabytes."""
    file = document_file(*((f"f{number}", LONG) for number in range(4_000)))
    wide = file.message_type[0]
    wide.field.add(name="text", number=5_000, type=STRING, label=Field.LABEL_OPTIONAL)
    top = file.message_type.add(name="Top")
    top.field.add(
        name="parts", number=1, type=MESSAGE, type_name=".docs.Document", label=Field.LABEL_REPEATED
    )
    documents = made(shelf(file), text_fields=("parts[].text",))
    value = mark(1) + b"\x02\x02" + b"\x0a\x00" * 100_000
    before = Process().memory_info().rss
    (found,) = RecordBatch.of([record(value)])
    assert documents.read_all(found).texts == [None]
    assert Process().memory_info().rss - before < 200 << 20


@pytest.mark.parametrize(
    "rest", [b"\x0b" * 10_000, b"\x0b\x0c" * 10_000, b"\x12\xff\xff\xff\xff\x07"]
)
def test_groups_and_lengths_end_in_time(rest: bytes) -> None:
    documents = made(shelf())
    with suppress(Unreadable):
        read(documents, record(mark(1) + FIRST + rest))


def test_apicurios_older_values_name_their_message() -> None:
    """Byte 0, an id of 8 bytes, and in Protobuf the message's name behind its length."""
    file = document_file(("id", STRING), message="Other")
    more = document_file(("id", STRING), ("text", STRING))
    file.message_type.append(more.message_type[0])
    here = Shelf()
    ident = 1 << 40
    here.schemas = {ident: proto(file), 2: avro()}
    documents = RegistryFormat(DocumentOptions(), None, here, id_bytes=8)
    long = b"\0" + ident.to_bytes(8)
    value = value_of(more, id="a", text="t")
    assert read(documents, record(long + b"\x0a\x0a\x08Document" + value)).text == "t"
    for wrong in (b"\x0a\x0a\x08Nobody12", b"\x00", b"\x7f\x0a", b"\x03\x0a\x01"):
        with pytest.raises(Unreadable, match=r"not-by-schema|no-text"):
            read(documents, record(long + wrong + value))
    whole = {"rank": 3, "id": "a", "tags": [], "text": "some text", "more": {}}
    plain = b"\0" + (2).to_bytes(8) + avro_value(whole)[5:]
    assert read(documents, record(plain)).text == "some text"
    assert here.asked == [ident, 2]


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_be_rejected(rest: bytes) -> None:
    documents = made(
        shelf(nested()), id_field="head.id", text_fields=("plain", "parts[].text"), time_field="at"
    )
    for value in (rest, FIRST + rest):
        with suppress(Unreadable):
            assert read(documents, record(mark(1) + value)).text
