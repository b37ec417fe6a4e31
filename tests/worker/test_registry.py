"""Documents with a schema, from the log to the verdicts, on the in-process log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.registry_server import RegistryServer, registry_server
from tests.worker.formats.registry.parts import (
    GUID,
    avro_value,
    document_file,
    mark,
    serialized,
    value_of,
)
from worker.app import Application, Environment
from worker.bus import Outgoing, Record
from worker.bus.memory.bus import MemoryBus
from worker.offline.embedded import create_topics
from worker.settings.loading import load
from worker.settings.model import Settings
from worker.wire.headers import MATCHES, REASON

TEXT = "The quick brown fox jumps over the lazy dog, and nobody knows why it does so."
SCHEMA = {
    "type": "record",
    "name": "Page",
    "fields": [
        {"name": "url", "type": "string"},
        {"name": "body", "type": {"type": "record", "name": "Body", "fields": [
            {"name": "lang", "type": "string"}, {"name": "text", "type": "string"}]}},
    ],
}  # fmt: skip
FILE = document_file(("url", 9), ("text", 9))


class World:
    """All stages on the in-process log."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.bus, self.topology = MemoryBus(), settings.topology(1)
        create_topics(self.bus, self.topology)
        watching = Environment(watch=True)
        self.application = Application(
            settings, self.topology, self.bus, folder, environment=watching
        )
        names = ("fingerprint", "index", "route")
        self.loops = [self.application.loop(name, "one") for name in names]

    def judge(self, *values: bytes, headers: Sequence[tuple[str, bytes]] = ()) -> None:
        for value in values:
            self.bus.append(Outgoing(self.topology.documents, 0, None, value, tuple(headers)))
        for _ in range(8):
            for loop in self.loops:
                loop.step(0.0)

    def published(self, topic: str) -> list[Record]:
        return [one for one in self.bus.read(topic, 0, 0, 1_000) if one.value is not None]

    def close(self) -> None:
        for loop in self.loops:
            loop.close()


def world(server: RegistryServer, folder: Path, **documents: object) -> World:
    given = {
        "documents.format": "registry",
        "documents.id_field": "url",
        "registry.url": server.url,
        "index.shards": 1,
        **documents,
    }
    return World(load(None, given), folder)


def page(number: int, ident: int = 1) -> bytes:
    body = {"lang": "en", "text": TEXT}
    return avro_value({"url": f"page-{number}", "body": body}, SCHEMA, ident)


def test_documents_leave_as_they_came_with_their_matches_in_headers(tmp_path: Path) -> None:
    with registry_server() as server:
        server.put(1, "AVRO", json.dumps(SCHEMA))
        server.put(2, "AVRO", json.dumps({**SCHEMA, "doc": "newer"}))
        made = world(server, tmp_path, **{"documents.text_fields": ["body.text"]})
        made.judge(page(1))
        # A newer schema is met while the stages run.
        made.judge(page(2), page(3, ident=2), mark(9) + b"\0", b"no frame")
        topology = made.topology
        assert [one.value for one in made.published(topology.unique)] == [page(1)]
        copies = made.published(topology.duplicate)
        assert [one.value for one in copies] == [page(2), page(3, ident=2)]
        matches = json.loads(dict(copies[0].headers)[MATCHES] or b"")
        assert matches == [{"id": "page-1", "similarity": 1.0}]
        reasons = [dict(one.headers)[REASON] or b"" for one in made.published(topology.rejected)]
        assert [one.partition(b":")[0] for one in reasons] == [b"no-schema", b"no-schema"]
        assert b"the registry doesn't have schema 9 (404)" in reasons[0]
        made.close()


def test_a_registry_that_is_away_rejects_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.formats.registry.documents._WAIT_SECONDS", 0.0)
    monkeypatch.setattr("worker.formats.registry.documents._PAUSE_SECONDS", 0.0)
    with registry_server() as server:
        server.put(1, "AVRO", json.dumps(SCHEMA))
        server.put(5, "PROTOBUF", serialized(FILE))
        made = world(server, tmp_path, **{"documents.text_fields": ["body.text", "text"]})
        server.failure = 503, b"{}"
        copy = mark(5) + b"\0" + value_of(FILE, url="copy", text=TEXT)
        made.judge(page(1), copy)
        topology = made.topology
        for topic in (topology.unique, topology.duplicate, topology.rejected):
            assert made.published(topic) == []
        assert "answered 503; documents wait for it" in caplog.text
        server.failure = None
        made.judge()
        assert [one.value for one in made.published(topology.unique)] == [page(1)]
        assert [one.value for one in made.published(topology.duplicate)] == [copy]
        assert made.published(topology.rejected) == []
        made.close()


def test_fields_that_are_missing_are_told_where_headers_name_the_schema(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with registry_server() as server:
        server.put(GUID, "AVRO", json.dumps(SCHEMA))
        made = world(server, tmp_path, **{"documents.text_fields": ["body.text", "title"]})
        named = [("__value_schema_id", mark(GUID))]
        made.judge(*[page(number)[5:] for number in range(2_000)], headers=named)
        assert "none of the first 2,000 documents has a value in field 'title'" in caplog.text
        made.close()
