"""Documents of a trace make a span of each burst, and others cost nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import ROOT, environment
from tests.support.copying import Copier
from worker.app import Application, Environment
from worker.bus import (
    AnyOutgoing,
    Header,
    Outgoing,
    OutgoingBatch,
    Record,
    RecordBatch,
    TopicPartition,
)
from worker.bus.memory.bus import MemoryBus
from worker.loop.loop import Loop
from worker.loop.options import LoopOptions
from worker.loop.tracing import MOST_LINKS, Tracing
from worker.offline.embedded import create_topics
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.stages.document_cache import DocumentCache
from worker.topology import STAGES

needs_sdk = pytest.mark.needs("opentelemetry")
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def record(*headers: Header) -> Record:
    return Record("in", 0, 0, -1, None, b"x", headers)


def parent(span: int) -> Header:
    return "traceparent", f"00-{TRACE}-{span:016x}-01".encode()


def nothing(written: list[AnyOutgoing]) -> bool:
    """Commit, and write nothing."""
    return not written


class Spans:
    """An exporter that keeps what it gets."""

    def __init__(self) -> None:
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import (  # noqa: PLC0415 -- an extra
            InMemorySpanExporter,
        )

        exporter = InMemorySpanExporter()
        self.tracing = Tracing("shop", "worker-1", exporter)
        self._exporter = exporter

    def finished(self) -> list[Any]:
        self.tracing.close()
        return list(self._exporter.get_finished_spans())


@pytest.fixture
def spans() -> Iterator[Spans]:
    made = Spans()
    yield made
    made.tracing.close()


@needs_sdk
def test_a_burst_is_a_span_with_links_to_the_documents(spans: Spans) -> None:
    records = [record(), record(parent(int(SPAN, 16))), record(("other", b"x"), parent(7))]
    assert spans.tracing.burst("route", RecordBatch.of(records), nothing)
    [span] = spans.finished()
    assert span.name == "route"
    assert span.parent is None
    assert [f"{link.context.trace_id:032x}" for link in span.links] == [TRACE, TRACE]
    assert [f"{link.context.span_id:016x}" for link in span.links] == [SPAN, f"{7:016x}"]
    assert all(link.context.is_remote for link in span.links)
    assert dict(span.attributes) == {
        "messaging.system": "kafka",
        "messaging.destination.name": "in",
        "messaging.batch.message_count": 3,
        "neardup.committed": True,
    }
    assert span.resource.attributes["service.name"] == "shop"
    assert span.resource.attributes["service.instance.id"] == "worker-1"


@needs_sdk
def test_a_span_has_a_bounded_number_of_links(spans: Spans) -> None:
    spans.tracing.burst(
        "route", RecordBatch.of([record(parent(n)) for n in range(1, 1_000)]), nothing
    )
    [span] = spans.finished()
    assert len(span.links) == MOST_LINKS == 128


@needs_sdk
@pytest.mark.parametrize(
    "header",
    [
        ("traceparent", None),
        ("traceparent", b""),
        ("traceparent", b"\xff" * 55),
        ("traceparent", f"00-{TRACE}-{SPAN}-00".encode()),
        ("traceparent", f"ff-{TRACE}-{SPAN}-01".encode()),
        ("traceparent", f"00-{'0' * 32}-{SPAN}-01".encode()),
        ("traceparent", f"00-{TRACE}-{'0' * 16}-01".encode()),
        ("traceparent", f"00-{TRACE.upper()}-{SPAN}-01".encode()),
        ("tracestate", f"00-{TRACE}-{SPAN}-01".encode()),
    ],
)
def test_what_is_no_sampled_parent_makes_no_span(spans: Spans, header: Header) -> None:
    assert spans.tracing.burst("route", RecordBatch.of([record(header)]), nothing)
    assert spans.finished() == []


@needs_sdk
def test_an_error_is_recorded_and_raised(spans: Spans) -> None:
    def fail(written: list[AnyOutgoing]) -> bool:
        del written
        raise ValueError("it broke")

    with pytest.raises(ValueError, match="it broke"):
        spans.tracing.burst("route", RecordBatch.of([record(parent(int(SPAN, 16)))]), fail)
    [span] = spans.finished()
    assert not span.status.is_ok
    assert [event.name for event in span.events] == ["exception"]


@needs_sdk
def test_what_is_written_has_links_as_well(spans: Spans) -> None:
    both = Outgoing("out", 0, None, b"x", (parent(7),))
    other = OutgoingBatch.of(Outgoing("out", 0, None, b"y", (("other", b"z"), parent(9))))

    def write(written: list[AnyOutgoing]) -> bool:
        written += [both, other]
        return True

    assert spans.tracing.burst("route", RecordBatch.of([record(parent(7))]), write)
    assert spans.tracing.burst("route", (), write)
    found = spans.finished()
    assert [[link.context.span_id for link in span.links] for span in found] == [[7, 9]] * 2
    assert "messaging.destination.name" not in found[1].attributes
    assert all(0 < span.start_time <= span.end_time for span in found)


@needs_sdk
@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
def test_documents_of_the_cache_are_in_a_span_of_route(
    spans: Spans, tmp_path: Path, cache_bytes: int
) -> None:
    settings = Settings.model_validate({"index": {"shards": 2, "cache_bytes": 1 << 20}})
    topology = settings.topology(1)
    bus = MemoryBus()
    create_topics(bus, topology)
    environment = Environment(documents=DocumentCache(cache_bytes), trace=spans.tracing.burst)
    application = Application(settings, topology, bus, tmp_path, environment=environment)
    for number in (1, 2):
        value = b'{"id": "%d", "text": "a text of some words"}' % number
        bus.append(Outgoing(topology.documents, 0, None, value, (parent(number),)))
    with ExitStack() as stack:
        loops = [application.loop(name, "one") for name in STAGES]
        for loop in loops:
            stack.callback(loop.close)
        for _ in range(10):
            for loop in loops:
                loop.step(0)
    published = {
        link.context.span_id
        for span in spans.finished()
        if span.name == "route" and span.attributes["neardup.committed"]
        for link in span.links
    }
    assert published == {1, 2}


@needs_sdk
def test_the_loop_makes_a_span_of_each_burst(spans: Spans) -> None:
    bus = MemoryBus()
    for topic in ("in", "out"):
        bus.create_topic(topic, 1)
    bus.commit_offsets("copy", {TopicPartition("in", 0): 0})
    for headers in ((parent(8),), (), (parent(9),)):
        bus.append(Outgoing("in", 0, None, b"x", headers))
    options = LoopOptions(trace=spans.tracing.burst, max_records=2)
    loop = Loop(Copier(), bus.join("copy", ["in"], "one"), options=options)
    for _ in range(6):
        loop.step(0)
    loop.close()
    found = spans.finished()
    assert [len(span.links) for span in found] == [1, 1]
    assert all(span.attributes["neardup.committed"] for span in found)


@contextmanager
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Serve what spans are sent to, and yield its address and what came."""
    came: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 -- its names
            del format, args

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", came
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@needs_sdk
def test_spans_are_sent_to_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as (url, came):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        with Tracing("shop", "worker-1") as tracing:
            tracing.burst("route", RecordBatch.of([record(parent(int(SPAN, 16)))]), nothing)
    [(path, body)] = came
    assert path == "/v1/traces"
    assert bytes.fromhex(TRACE) in body
    assert b"worker-1" in body


def test_a_missing_sdk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'neardup\[tracing\]'"):
        Tracing("shop", "worker-1")


def test_without_tracing_the_sdk_is_never_imported() -> None:
    program = "import sys, worker.cli.run; assert 'opentelemetry' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=ROOT, env=environment(), timeout=120
    )
