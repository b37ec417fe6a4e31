"""Schemas of strangers: whatever they are, a document is read or rejected, in bounded time."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st

from tests.worker.formats.registry.parts import (
    Shelf,
    document_file,
    made,
    mark,
    proto,
    read,
    record,
    serialized,
)
from worker.formats.registry.client import Fetched
from worker.formats.unreadable import Unreadable

SECONDS = 20
"""Of a slow machine, for any of these."""


def nested(count: int, wrap: Callable[[str], str]) -> str:
    text = '"string"'
    for _ in range(count):
        text = wrap(text)
    return text


def of(name: str, *types: object) -> dict[str, object]:
    fields = [{"name": f"f{number}", "type": one} for number, one in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields}


def chain(count: int, first: object = "string") -> list[dict[str, object]]:
    """Return records of which each has the one before it as a field."""
    return [of("r0", first)] + [of(f"r{one}", f"r{one - 1}") for one in range(1, count)]


def document(*more: object) -> str:
    fields = [{"name": "text", "type": "string"}, *of("d", *more)["fields"]]  # type: ignore[misc]
    return json.dumps({"type": "record", "name": "d", "fields": fields})


def laughs(count: int) -> list[dict[str, object]]:
    """Return records without bytes, each with ten of the one before it."""
    first = [of("r0", "null")]
    return first + [of(f"r{one}", *[f"r{one - 1}"] * 10) for one in range(1, count)]


AVRO: dict[str, Fetched] = {
    "a chain in a reference": Fetched(
        "AVRO", document("r999"), [("chain", json.dumps(chain(1_000)))]
    ),
    "a chain in a union before it": Fetched("AVRO", document(chain(1_000), "r999"), []),
    "a chain of references": Fetched(
        "AVRO", document("r199"), [(f"r{n}", json.dumps(one)) for n, one in enumerate(chain(200))]
    ),
    "values without bytes": Fetched("AVRO", document(laughs(12), "r11"), []),
    "many of them in an array": Fetched(
        "AVRO", document({"type": "array", "items": of("e", *["null"] * 500, "int")}), []
    ),
    "arrays in arrays": Fetched(
        "AVRO", nested(300, lambda one: f'{{"type":"array","items":{one}}}'), []
    ),
    "a deep text": Fetched("AVRO", "[" * 100_000, []),
    "unions in a chain": Fetched("AVRO", nested(900, lambda one: f"[{one}]"), []),
    "a large union": Fetched("AVRO", document([of(f"r{n}", "int") for n in range(5_000)]), []),
    "many types in a long namespace": Fetched(
        "AVRO", json.dumps({**of("d", *chain(20)), "namespace": "a." * 100_000 + "b"}), []
    ),
    "a long name": Fetched("AVRO", json.dumps(of("n" * 1_000_000, "x")), []),
    "a logical type that is a list": Fetched(
        "AVRO", '{"type": "string", "logicalType": ["x"]}', []
    ),
    "a number": Fetched("AVRO", "1" * 5_000, []),
    "nothing": Fetched("AVRO", "", []),
}


def wide(count: int) -> FileDescriptorProto:
    return document_file(*((f"f{number}", Field.TYPE_INT64) for number in range(count)))


def importing(count: int) -> Fetched:
    """Return a file that imports another one, which imports another one, and so on."""
    files = []
    for number in range(count):
        file = FileDescriptorProto(name=f"f{number}.proto", syntax="proto3")
        file.dependency[:] = [f"f{number + 1}.proto"] if number + 1 < count else []
        files.append(file)
    return Fetched("PROTOBUF", serialized(files[0]), [(one.name, serialized(one)) for one in files])


def deep_messages() -> FileDescriptorProto:
    file = FileDescriptorProto(name="a.proto", syntax="proto3")
    message = file.message_type.add(name="m")
    for _ in range(90):
        message = message.nested_type.add(name="m")
    return file


OTHER: dict[str, Fetched] = {
    "no size": Fetched("AVRO", document({"type": "fixed", "name": "x", "size": "many"}), []),
    "a type that is itself": Fetched("AVRO", document(of("x", "x")), []),
    "imports that import themselves": Fetched(
        "PROTOBUF",
        serialized(FileDescriptorProto(name="a.proto", dependency=["b.proto"])),
        [("b.proto", serialized(FileDescriptorProto(name="b.proto", dependency=["b.proto"])))],
    ),
    "a chain of imports": importing(1_500),
    "many imports": proto(
        FileDescriptorProto(
            name="a.proto", dependency=[f"google/api/a{'b' * n}.proto" for n in range(3_000)]
        )
    ),
    "a wide message": proto(wide(20_000)),
    "a long package": proto(
        FileDescriptorProto(package="a." * 100_000 + "b", message_type=wide(10).message_type)
    ),
    "no message": proto(FileDescriptorProto(name="a.proto")),
    "deep messages": proto(deep_messages()),
    "names that are none": proto(
        FileDescriptorProto(name="\0", package="..", dependency=["", "/"])
    ),
    "no descriptor": Fetched("PROTOBUF", b64encode(b"\xff" * 1_000).decode(), []),
    "a text of brackets": Fetched("PROTOBUF", "message a {" * 10_000, []),
    "another type": Fetched("X" * 100_000, "", []),
}


def reason(schema: Fetched, rest: bytes, *, keys: bool) -> str:
    """Return why a document with a schema is rejected; nothing if it isn't."""
    here = Shelf()
    here.schemas[1] = schema
    documents = made(here, **({"key": "registry"} if keys else {}))
    try:
        read(documents, record(mark(1) + rest, mark(1) + rest if keys else None))
    except Unreadable as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", [*AVRO, *OTHER])
@pytest.mark.parametrize("keys", [False, True])
def test_a_document_with_a_hostile_schema_is_read_or_rejected(name: str, *, keys: bool) -> None:
    schema = {**AVRO, **OTHER}[name]
    began = time.monotonic()
    for rest in (b"", b"\0", b"\x08text" + b"\0" * 100, b"\x02" * 2_000, b"\xff" * 10):
        why = reason(schema, rest, keys=keys)
        assert len(why) < 500, "it is a header"
        assert name in OTHER or why.startswith("no-schema: schema 1 can't be used")
    assert time.monotonic() - began < SECONDS


def test_a_count_makes_no_values_by_itself() -> None:
    """Neither of an array, nor of a map, nor of what is skipped."""
    lists = {"type": "array", "items": "int"}, {"type": "map", "values": "null"}
    huge = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
    for number, kind in enumerate(
        (*lists, {"type": "array", "items": lists[1]}, "string", "bytes")
    ):
        for field in ("text", "more"):
            here = Shelf()
            schema = {"type": "record", "name": "d", "fields": [{"name": field, "type": kind}]}
            here.schemas[number + 1] = Fetched("AVRO", json.dumps(schema), [])
            began = time.monotonic()
            for count in (huge, b"\xff" + huge[1:], b"\x01" + huge):  # The last one is by blocks.
                with pytest.raises(Unreadable):
                    read(made(here), record(mark(number + 1) + count))
            assert time.monotonic() - began < SECONDS


NAMES = st.sampled_from(["a", "b", "c", "text", "id", "p.a", "", "null", "d\0", "x" * 300, 7, None])
PLAIN = st.sampled_from(["null", "int", "string", "bytes", "float", "boolean", 5, None, "a", "p.a"])


def complex_types(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Return schemas that have others in them, with what doesn't belong there now and then."""
    kinds = st.sampled_from(["record", "error", "array", "map", "enum", "fixed", "union", ["x"]])
    field = st.fixed_dictionaries(
        {"name": NAMES, "type": inner}, optional={"default": st.none(), "aliases": NAMES}
    )
    return st.lists(inner, max_size=4) | st.fixed_dictionaries(
        {"type": kinds | inner},
        optional={
            "name": NAMES,
            "namespace": NAMES,
            "fields": st.lists(field, max_size=4) | inner,
            "items": inner,
            "values": inner,
            "symbols": st.lists(NAMES, max_size=3),
            "size": st.sampled_from([0, 1, -1, 1 << 62, "1"]),
            "logicalType": st.sampled_from(["date", "timestamp-millis", "decimal", [], {}]),
        },
    )


@given(
    st.recursive(PLAIN, complex_types, max_leaves=12),
    st.lists(st.recursive(PLAIN, complex_types, max_leaves=6), max_size=2),
    st.binary(max_size=40),
)
def test_any_json_is_a_schema_or_none(
    schema: object, references: list[object], rest: bytes
) -> None:
    here = Shelf()
    others = [(str(number), json.dumps(one)) for number, one in enumerate(references)]
    here.schemas[1] = Fetched("AVRO", json.dumps(schema), others)
    documents = made(here, key="registry")
    with suppress(Unreadable):
        read(documents, record(mark(1) + rest, mark(1) + rest))


@given(st.data(), st.binary(max_size=40))
def test_any_descriptor_is_a_schema_or_none(data: st.DataObject, rest: bytes) -> None:
    """A good one with some bytes changed."""
    file = document_file(("id", Field.TYPE_STRING), ("text", Field.TYPE_STRING))
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type[0].field.add(
        name="at", number=3, type=11, label=3, type_name=".docs.Document"
    )
    changed = bytearray(file.SerializeToString())
    for _ in range(data.draw(st.integers(0, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    here = Shelf()
    here.schemas[1] = Fetched("PROTOBUF", b64encode(changed).decode(), [])
    documents = made(here, text_fields=("text", "at[].text"), key="registry")
    with suppress(Unreadable):
        read(documents, record(mark(1) + b"\0" + rest, mark(1) + b"\0" + rest))
