"""Schemas, values with them, and the format that reads these."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO
from uuid import UUID

from fastavro import parse_schema, schemaless_writer
from google.protobuf import timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from worker.bus import Record, RecordBatch
from worker.formats.base import Document, DocumentOptions
from worker.formats.registry.client import Fetched, Missing
from worker.formats.registry.documents import RegistryFormat
from worker.formats.registry.wire_format import Ident, named
from worker.formats.unreadable import Unreadable

GUID = "89791762-2336-4186-9674-299b90a802e2"
TIME = 1_700_000_000_000

DOCUMENT = {
    "type": "record",
    "name": "Document",
    "fields": [
        {"name": "rank", "type": "int"},
        {"name": "id", "type": "string"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "text", "type": ["null", "string"]},
        {"name": "more", "type": {"type": "map", "values": "double"}},
    ],
}


class Shelf:
    """Schemas by their ids; counts how often each is asked for."""

    def __init__(self) -> None:
        self.schemas: dict[Ident, Fetched] = {}
        self.asked: list[Ident] = []
        self.together: list[int] = []
        self.error: Exception | None = None

    def __call__(self, idents: Sequence[Ident]) -> list[Fetched | Exception]:
        self.asked += idents
        self.together.append(len(idents))
        return [self.error or self.schemas.get(one) or _missing(one) for one in idents]


def _missing(ident: Ident) -> Missing:
    return Missing(f"the registry doesn't have {named(ident)}")


def avro(schema: object = DOCUMENT, *references: tuple[str, str]) -> Fetched:
    return Fetched("AVRO", json.dumps(schema), list(references))


def avro_value(value: object, schema: object = DOCUMENT, ident: int = 1) -> bytes:
    out = BytesIO()
    schemaless_writer(out, parse_schema(json.loads(json.dumps(schema))), value)
    return mark(ident) + out.getvalue()


def mark(ident: int | str) -> bytes:
    if isinstance(ident, int):
        return b"\0" + ident.to_bytes(4, "big")
    return b"\1" + UUID(ident).bytes


def document_file(*fields: tuple[str, int], message: str = "Document") -> FileDescriptorProto:
    """Return a file with one message, given the names and types of its fields."""
    file = FileDescriptorProto(name="document.proto", package="docs", syntax="proto3")
    made = file.message_type.add(name=message)
    for number, (name, kind) in enumerate(fields, 1):
        made.field.add(
            name=name, number=number, type=kind, label=FieldDescriptorProto.LABEL_OPTIONAL
        )
    return file


def serialized(file: FileDescriptorProto) -> str:
    return b64encode(file.SerializeToString()).decode()


def proto(file: FileDescriptorProto, *references: tuple[str, str]) -> Fetched:
    return Fetched("PROTOBUF", serialized(file), list(references))


def value_of(file: FileDescriptorProto, message: str = "Document", **fields: object) -> bytes:
    """Return a message of a file in bytes."""
    pool = DescriptorPool()
    for known in (timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    made = GetMessageClass(pool.FindMessageTypeByName(f"docs.{message}"))(**fields)
    return bytes(made.SerializeToString())


def made(shelf: Shelf, **options: object) -> RegistryFormat:
    return RegistryFormat(DocumentOptions(**options), None, shelf)  # type: ignore[arg-type]


def record(
    value: bytes | None, key: bytes | None = None, headers: Sequence[tuple[str, bytes]] = ()
) -> Record:
    return Record("docs", 3, 17, TIME, key, value, tuple(headers))


def read(documents: RegistryFormat, one: Record) -> Document:
    """Read a record alone and with others; both must give the same."""
    ids, texts, times = documents.read_all(*RecordBatch.of([one]))
    try:
        document = documents.read(one)
    except Unreadable:
        assert texts == [None]
        raise
    assert texts == [None] or Document(ids[0], texts[0] or "", times[0]) == document
    return document
