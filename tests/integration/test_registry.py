"""Documents with a schema in a real registry, on Kafka: judged, waited for, and never changed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from localkafka.registry import SchemaRegistry
from tests.integration.conftest import Launch
from tests.support.application import ApplicationUnderTest
from tests.support.command_line import on_kafka
from tests.support.registry_server import registry_server
from tests.worker.formats.registry.parts import (
    avro_value,
    document_file,
    mark,
    serialized,
    value_of,
)
from worker.bus import Outgoing, Record
from worker.wire.headers import MATCHES, REASON

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

TEXT = "The quick brown fox jumps over the lazy dog, and nobody knows why it does so."
PERSON = {"type": "record", "name": "p.Person", "fields": [{"name": "name", "type": "string"}]}
PAGE = {
    "type": "record",
    "name": "p.Page",
    "fields": [
        {"name": "by", "type": "p.Person"},
        {"name": "text", "type": "string"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
WHOLE = {**PAGE, "fields": [{"name": "by", "type": PERSON}, *PAGE["fields"][1:]]}
FILE = document_file(("text", 9))
PROTO = 'syntax = "proto3"; package docs; message Document { string text = 1; }'
"""The same."""


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as started:
        yield started


def register(registry: SchemaRegistry) -> list[int]:
    """Register all schemas; return the ids of pages, Protobuf in both forms, JSON and keys."""
    registry.register("person", "AVRO", json.dumps(PERSON))
    return [
        registry.register("pages", "AVRO", json.dumps(PAGE), ("p.Person", "person")),
        registry.register("messages", "PROTOBUF", serialized(FILE)),
        registry.register("texts", "PROTOBUF", PROTO),
        registry.register(
            "objects",
            "JSON",
            '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}',
        ),
        registry.register("keys", "AVRO", '"string"'),
    ]


def written(application: ApplicationUnderTest, key: bytes, value: bytes | None) -> None:
    application.feed([Outgoing(application.topology.documents, 0, key, value)])


def header(record: Record, name: str) -> bytes:
    return dict(record.headers).get(name) or b""


def test_documents_with_schemas_are_judged(launch: Launch, registry: SchemaRegistry) -> None:
    pages, messages, texts, objects, keys = register(registry)
    application = launch(
        partitions=1,
        settings={
            "documents": {"format": "registry", "key": "registry"},
            "registry": {"url": registry.url},
            "limits": {"reject_share": 1.0},
        },
    )
    values = {
        "page": avro_value({"by": {"name": "Ada"}, "text": TEXT, "tags": ["a"]}, WHOLE, pages),
        "message": mark(messages) + b"\0" + value_of(FILE, text=TEXT),
        "text": mark(texts) + b"\0" + value_of(FILE, text=TEXT),
        "object": mark(objects) + json.dumps({"text": TEXT}).encode(),
        "unknown": mark(9_999) + b"\0",
    }
    framed = {name: avro_value(name, "string", keys) for name in values}
    application.start("alpha")
    for name, value in values.items():
        written(application, framed[name], value)
    audit = application.audit
    audit.reach(len(values))
    assert [one.value for one in audit.unique] == [values["page"]]
    assert [one.value for one in audit.duplicate] == [
        values[name] for name in ("message", "text", "object")
    ]
    assert json.loads(header(audit.duplicate[0], MATCHES)) == [{"id": "page", "similarity": 1.0}]
    assert header(audit.rejected[0], REASON).startswith(b"no-schema: the registry doesn't have")
    shown = on_kafka("explain", "--kafka", "--config", application.config, "page", "object")
    assert shown.returncode == 0, shown.stderr
    # While the registry is away, what has a schema that was met goes on, and the rest waits.
    new = {**WHOLE, "doc": "Newer."}
    ident = registry.register("newer", "AVRO", json.dumps(new))
    newer = {"by": {"name": "Bea"}, "text": f"{TEXT} {TEXT[::-1]}", "tags": []}
    registry.pause()
    written(application, framed["page"], values["page"])
    audit.reach(len(values) + 1)
    assert audit.duplicate[-1].value == values["page"]
    written(application, framed["object"], avro_value(newer, new, ident))
    application.worker("alpha").await_text("documents wait for it, and none is rejected")
    registry.resume()
    audit.reach(len(values) + 2)
    assert audit.unique[-1].value == avro_value(newer, new, ident)
    assert len(audit.rejected) == 1


def test_what_strangers_register_ends_no_worker(launch: Launch) -> None:
    chain = [{"type": "record", "name": "r0", "fields": []}] + [
        {"type": "record", "name": f"r{one}", "fields": [{"name": "f", "type": f"r{one - 1}"}]}
        for one in range(1, 1_000)
    ]
    text = {"name": "text", "type": "string"}
    good = {"type": "record", "name": "Good", "fields": [text]}
    deep = {**good, "name": "Deep", "fields": [text, {"name": "x", "type": "r999"}]}
    with registry_server() as server:
        server.put(1, "AVRO", json.dumps(good))
        server.put(2, "AVRO", json.dumps(deep), ("chain", "chain", json.dumps(chain)))
        server.put(3, "AVRO", json.dumps(good), ("self", "self", "{}"))
        server.answers["/subjects/self/versions/1"] = server.answers["/schemas/ids/3"]
        server.put(4, "AVRO", "[" * 100_000)
        application = launch(
            partitions=1,
            settings={
                "documents": {"format": "registry"},
                "registry": {"url": server.url},
                "limits": {"reject_share": 1.0},
            },
        )
        application.start("alpha")
        rest = avro_value({"text": TEXT}, good)[5:]
        for ident in (1, 2, 3, 4, *range(1_000, 1_200), 1):
            written(application, b"key-%d" % ident, mark(ident) + rest)
        application.audit.reach(205)
        assert len(application.audit.unique) + len(application.audit.duplicate) == 2
        reasons = {header(one, REASON).partition(b":")[0] for one in application.audit.rejected}
        assert reasons == {b"no-schema"}
        assert application.worker("alpha").running
        assert sum("ids" in one for one in server.asked) == 204
