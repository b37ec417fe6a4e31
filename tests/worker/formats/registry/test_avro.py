"""Documents in Avro."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worker.formats.registry.parts import (
    DOCUMENT,
    TIME,
    Shelf,
    avro,
    avro_value,
    made,
    mark,
    read,
    record,
)
from worker.formats.base import Document
from worker.formats.registry.client import Fetched
from worker.formats.unreadable import Unreadable

WHOLE = {"rank": 3, "id": "a", "tags": ["x", "y"], "text": "some text", "more": {"z": 1.5}}


def shelf(*schemas: object) -> Shelf:
    found = Shelf()
    found.schemas = {number: avro(one) for number, one in enumerate(schemas or (DOCUMENT,), 1)}
    return found


def test_a_document_is_read() -> None:
    documents = made(shelf())
    found = read(documents, record(avro_value(WHOLE)))
    assert found == Document(b"a", "some text", TIME)
    assert documents.excerpt(avro_value(WHOLE)) == "some text"
    assert documents.identify(avro_value(WHOLE)) == b"a"
    assert documents.fields(avro_value(WHOLE)) == ["rank", "id", "tags", "text", "more"]
    assert set(documents.having(avro_value(WHOLE))) == {"id", "text"}
    assert not documents.can_splice(avro_value(WHOLE))


NOTE = {"type": "record", "name": "p.Note", "fields": [{"name": "text", "type": "string"}]}
REPLY = {
    "type": "record",
    "name": "p.Reply",
    "fields": [*NOTE["fields"], {"name": "to", "type": ["null", "p.Note", "p.Reply"]}],
}
LONE = {"type": "record", "name": "p.Lone", "fields": [{"name": "text", "type": "string"}]}


@pytest.mark.parametrize(
    ("types", "given"),
    [
        (["p.Note", "p.Lone"], [NOTE, LONE]),
        (["p.Note", "p.Reply"], [NOTE, REPLY]),
    ],
)
def test_a_topic_with_several_types_is_a_union_of_what_is_elsewhere(
    types: list[str], given: list[dict[str, object]]
) -> None:
    """As Confluent describes it; the second union has a type that contains itself."""
    references = [(str(one["name"]), json.dumps(one)) for one in given]
    here = Shelf()
    here.schemas = {1: Fetched("AVRO", json.dumps(types), references)}
    documents = made(here)
    for branch, rest in enumerate((b"", b"\0")):
        value = mark(1) + bytes((2 * branch,)) + b"\x12some text" + rest * (types[1] == "p.Reply")
        found = read(documents, record(value, b"k"))
        assert (found.id, found.text) == (b"k", "some text")


def test_without_an_id_the_key_has_it() -> None:
    schema = {**DOCUMENT, "fields": DOCUMENT["fields"][2:]}
    value = avro_value({"tags": [], "text": "some text", "more": {}}, schema)
    assert read(made(shelf(schema)), record(value, b"k")).id == b"k"


def test_a_schema_is_fetched_when_it_is_met_and_kept() -> None:
    renamed = {**DOCUMENT, "fields": [*DOCUMENT["fields"], {"name": "new", "type": "string"}]}
    here = shelf(DOCUMENT, renamed)
    documents = made(here)
    for ident in (1, 1, 2, 1, 2):
        value = avro_value({**WHOLE, "new": "n"}, renamed if ident == 2 else DOCUMENT, ident)
        assert read(documents, record(value)).text == "some text"
    assert here.asked == [1, 2]


ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {
            "name": "before",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Value",
                    "fields": [
                        {"name": "id", "type": "long"},
                        {"name": "parts", "type": {"type": "array", "items": "string"}},
                        {"name": "note", "type": "string"},
                    ],
                },
            ],
        },
        {"name": "after", "type": ["null", "Value"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        # Needs a type twice, with different fields.
        {"deletes": "forget", "deleted_id_field": "before.id"},
    ],
)
def test_paths_lead_into_records_and_arrays(options: dict[str, object]) -> None:
    documents = made(
        shelf(ENVELOPE),
        id_field="after.id",
        text_fields=("after.parts[]",),
        time_field="at",
        **options,
    )
    after = {"id": 5, "parts": ["one", "two"], "note": "n"}
    value = avro_value(
        {"before": after, "after": after, "at": datetime(1980, 5, 6, tzinfo=UTC)}, ENVELOPE
    )
    found = read(documents, record(value))
    assert found == Document(b"5", "one\ntwo", 326_419_200_000)


def test_a_delete_forgets() -> None:
    documents = made(
        shelf(ENVELOPE),
        id_field="after.id",
        text_fields=("after.parts[]",),
        deletes="forget",
        deleted_id_field="before.id",
    )
    before = {"id": 5, "parts": ["one"], "note": "n"}
    value = avro_value(
        {"before": before, "after": None, "at": datetime(1980, 5, 6, tzinfo=UTC)}, ENVELOPE
    )
    with pytest.raises(Unreadable) as raised:
        read(documents, record(value))
    assert getattr(raised.value, "id", None) == b"5"
    assert documents.identify(value) == b"5"


def test_other_logical_types_are_what_they_are_stored_as() -> None:
    schema = {
        "type": "record",
        "name": "D",
        "fields": [
            {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "text", "type": "string"},
        ],
    }
    plain = {**schema, "fields": [{"name": "id", "type": "string"}, schema["fields"][1]]}
    value = avro_value({"id": "no uuid", "text": "t"}, plain)
    assert read(made(shelf(schema)), record(value)).id == b"no uuid"


def test_schemas_refer_to_others() -> None:
    here = shelf()
    person = {"type": "record", "name": "p.Person", "fields": [{"name": "name", "type": "string"}]}
    schema = {
        "type": "record",
        "name": "D",
        "fields": [{"name": "by", "type": "p.Person"}, {"name": "text", "type": "string"}],
    }
    here.schemas[1] = avro(schema, ("p.Person", json.dumps(person)))
    whole = {**schema, "fields": [{"name": "by", "type": person}, schema["fields"][1]]}
    value = avro_value({"by": {"name": "Ada"}, "text": "t"}, whole)
    assert read(made(here, id_field="by.name"), record(value)).id == b"Ada"


TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [
        {"name": "next", "type": ["null", "Tree"]},
        {"name": "text", "type": "string"},
    ],
}


def test_depth_ends_in_a_rejection() -> None:
    """The compiled reader of such a value ends the process."""
    documents = made(shelf(TREE))
    shallow = avro_value({"next": {"next": None, "text": "in"}, "text": "out"}, TREE)
    assert read(documents, record(shallow)).text == "out"
    with pytest.raises(Unreadable, match="too-deep"):
        read(documents, record(mark(1) + b"\x02" * 300_000 + b"\0\x02a"))


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        (b"", "not-by-schema: not what the Avro schema says: the value ends too early"),
        (avro_value(WHOLE)[5:] + b"\0", "not-by-schema: .*: 1 bytes are left over"),
        (b"\x06\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", "not-by-schema: .*: Expected"),
        (b"\x06\x02a\0\x08", "not-by-schema"),  # No such branch of the union.
        (b"\x06\x02\xff" + avro_value(WHOLE)[8:], "not-by-schema: .* codec can't decode"),
    ],
)
def test_bytes_that_the_schema_does_not_describe_are_rejected(rest: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read(made(shelf()), record(mark(1) + rest))


@given(st.binary(max_size=200), st.sampled_from([DOCUMENT, ENVELOPE, TREE]))
def test_no_bytes_do_more_than_be_rejected(rest: bytes, schema: object) -> None:
    documents = made(shelf(schema), id_field="after.id", text_fields=("text", "after.parts[]"))
    with suppress(Unreadable):
        assert read(documents, record(mark(1) + rest)).text


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "record", "name": "D", "fields": [{"name": "x", "type": "y"}]}, "UnknownType"),
        (
            {
                "type": "record",
                "name": "D",
                "fields": [{"name": "x", "type": {"type": "array", "items": "null"}}],
            },
            "an array whose elements take no bytes",
        ),
    ],
)
def test_a_schema_that_is_none_is_named(schema: object, why: str) -> None:
    with pytest.raises(Unreadable, match=f"no-schema: schema 1 can't be used: .*{why}"):
        read(made(shelf(schema)), record(mark(1) + b"\0"))


def test_a_value_must_be_a_record() -> None:
    with pytest.raises(Unreadable, match="not-an-object: the value is a string, not a record"):
        read(made(shelf("string")), record(avro_value("a", "string")))
