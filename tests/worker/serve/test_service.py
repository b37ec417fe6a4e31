"""Queries over HTTP: clients on real sockets, shards that follow an in-process log."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.worker.serve.parts import Site, body
from tests.worker.wire.samples import FINGERPRINTS
from worker.app import Application, Environment
from worker.bus import Outgoing, Queued
from worker.bus.memory.bus import MemoryBus
from worker.index.store import BandStore
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.probes.probes import Pages
from worker.probes.server import serving
from worker.serve.queries import Said
from worker.serve.server import Limits, answering
from worker.serve.service import QueryService
from worker.settings.sections import ServeSection
from worker.wire.codec import FrameError, encode

TEXT = "The quick brown fox jumps over the lazy dog, and then it jumps back again."
DEADLINE = 60.0
PATIENT = Limits(seconds=300)
AT = ServeSection(port=0)
JSON = {"Content-Type": "application/json"}
Reply = tuple[int, Any]


class Server:
    """A server beside an application, on a port of its own."""

    def __init__(self, directory: Path, stack: ExitStack, **sections: Any) -> None:  # noqa: ANN401 -- sections of settings
        self.site = stack.enter_context(Site(directory, **sections))
        self.metrics = Metrics()
        self.stopping = threading.Event()
        site = self.site
        self.service = stack.enter_context(QueryService(site.settings, self.metrics, self.stopping))
        self.application = Application(
            site.settings,
            site.topology,
            site.bus,
            directory / "server",
            environment=Environment(self.metrics),
        )
        asked = answering(
            AT, self.service.query, self.service.most_bytes, PATIENT, groups=self.service.groups
        )
        self.port = stack.enter_context(asked)
        pages = Pages(self.metrics, self.service.health)
        self.probes = stack.enter_context(serving("127.0.0.1", 0, pages.answer))

    def begin(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.site.following.close()
        self.site.following = self.service.begin(self.application, clock)

    def ask(self, request: bytes) -> Reply:
        return self._request(self.port, "POST", "/v1/query", request)

    def get(self, path: str) -> Reply:
        return self._request(self.port, "GET", path)

    def probe(self, path: str) -> Reply:
        return self._request(self.probes, "GET", path)

    def _request(self, port: int, method: str, path: str, request: bytes | None = None) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        try:
            connection.request(method, path, request, JSON)
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        is_json = answer.headers["Content-Type"] == "application/json"
        return answer.status, json.loads(said) if is_json else said.decode()


@contextmanager
def begun(directory: Path, **sections: Any) -> Iterator[Server]:  # noqa: ANN401 -- as above
    """Yield a server that has two near copies and another document."""
    with ExitStack() as stack:
        server = Server(directory, stack, **sections)
        server.begin()
        for ident, text in (
            ("a", TEXT),
            ("b", TEXT + " So there!"),
            ("c", "Something else entirely."),
        ):
            server.site.judge({"id": ident, "text": text})
        server.site.catch_up()
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with begun(tmp_path_factory.mktemp("server")) as made:
        yield made


def test_a_document_is_told_what_it_matches_and_why(server: Server) -> None:
    status, said = server.ask(body({"id": "d", "text": TEXT.upper()}))
    assert status == 200
    end = server.site.bus.end_offset(*server.site.topology.order)
    assert (said["behind"], said["threshold"], said["position"]) == (0, 0.8, end - 1)
    (answer,) = said["answers"]
    assert (answer["verdict"], answer["reason"]) == ("duplicate", None)
    first, second = answer["matches"]
    assert (first["id"], first["similarity"], first["error"], first["same_text"]) == (
        "a", 1.0, 0.0, True,
    )  # fmt: skip
    bands = server.site.topology.layout.parameters.bands
    assert first["bands"] == list(range(bands))
    assert second["id"] == "b"
    assert not second["same_text"]
    assert 0 < second["error"] < 0.1
    assert 0 < len(second["bands"]) < bands
    assert answer["first"] == {"id": "a", "sequence": first["sequence"]}
    sizes = {one["band"]: one["sizes"] for one in answer["buckets"]}
    assert sizes.keys() == {None, *range(bands)}
    assert sizes[None] == [1]
    assert {band for band, found in sizes.items() if sum(found) > 1} <= set(second["bands"])


def test_several_queries_are_answered_in_their_order(server: Server) -> None:
    queries = [{"text": "nothing like it"}, {"text": ""}, {"document": {"text": TEXT}}]
    status, said = server.ask(json.dumps({"queries": queries}).encode())
    assert status == 200
    assert [one["verdict"] for one in said["answers"]] == ["unique", "rejected", "duplicate"]
    assert said["answers"][1]["reason"] == "empty-text: the text is empty or blank"
    assert server.metrics.value(table.QUERY_VERDICTS, "rejected") == 1


@pytest.mark.parametrize(
    ("request_body", "reason"),
    [
        (b"", "Input data was truncated"),
        (b"\xff", "JSON is malformed"),
        (b"[]", "Expected `object`"),
        (b"{}", "a query has either a text or a document"),
        (b'{"text": "a", "document": {"text": "a"}}', "a query has either a text or a document"),
        (b'{"text": 7}', "Expected `str`"),
        (b'{"txt": "a"}', "unknown field `txt`"),
        (b'{"queries": []}', "got 0, takes 1 to 100"),
        (b'{"queries": [%s]}' % b", ".join([b'{"text": "a"}'] * 101), "got 101, takes 1 to 100"),
        (b'{"queries": [{"text": "a"}], "text": "a"}', "not several of them"),
        (b'{"document": {"body": "a"}}', "no-text: no field 'text'"),
        (b'{"document": "a"}', "not-an-object: the JSON value is not an object"),
        (b'{"document": {"text": "a", "id": 1.5}}', "id-wrong-type: field 'id' is a number"),
        (b'{"text": "\\u200b"}', "empty-text: nothing is left of the text once it is normalised"),
        (b'{"document": ' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_cannot_be_judged_is_refused_with_the_reason(
    server: Server, request_body: bytes, reason: str
) -> None:
    status, said = server.ask(request_body)
    assert status == 400
    assert reason in said["error"]


def test_queries_are_posted(server: Server) -> None:
    assert server.get("/v1/query") == (405, {"error": "queries are posted"})
    assert server.get("/v1/other") == (404, {"error": "Not Found"})
    assert server.get("/metrics")[0] == 404


def test_plain_text_documents_are_strings(tmp_path: Path) -> None:
    with begun(tmp_path, documents={"format": "text"}) as server:
        assert server.ask(b'{"document": "Something."}')[0] == 200
        status, said = server.ask(b'{"document": {"text": "Something."}}')
    assert (status, said["error"]) == (
        400, "document: must be a string, because documents are plain text",
    )  # fmt: skip


def test_it_is_not_ready_before_all_shards_are_at_the_end_of_the_log(tmp_path: Path) -> None:
    with ExitStack() as stack:
        server = Server(tmp_path, stack)
        for number in range(100):
            server.site.judge({"id": str(number), "text": f"{TEXT} {number}"})
        assert server.ask(body({"text": TEXT})) == (503, {"error": "the server waits for Kafka"})
        assert server.probe("/readyz")[0] == 503
        server.begin()
        server.site.following.step()
        status, said = server.ask(body({"text": TEXT}))
        assert (status, said["error"]) == (503, "shard 0 is warming up")
        status, said = server.probe("/readyz")
        assert (status, said["restoring"]) == (503, ["shard 0", "shard 1"])
        assert server.probe("/healthz")[0] == 200
        for _ in range(20):
            server.site.following.step()
        assert server.probe("/readyz")[0] == 200
        assert server.ask(body({"text": TEXT}))[0] == 200
        assert server.metrics.value(table.QUERIES, "unready") == 1
        assert server.metrics.value(table.QUERIES, "answered") == 1


def test_an_answer_says_how_far_behind_it_is(tmp_path: Path) -> None:
    with begun(tmp_path) as server:
        before = server.ask(body({"text": TEXT}))[1]
        for number in range(30):
            server.site.judge({"id": str(number), "text": f"{TEXT} {number}"})
        server.site.following.step()  # Reads some of them.
        after = server.ask(body({"text": TEXT}))[1]
        end = server.site.bus.end_offset(*server.site.topology.order)
        assert before["position"] < after["position"] < end - 1
        assert after["behind"] == end - after["position"] - 1  # A marker is behind it.
        server.service.export(server.site.bus)
        assert server.metrics.value(table.STANDBY_LAG_RECORDS, "1") == after["behind"]
        assert (server.metrics.value(table.INDEX_KEYS, "1") or 0) > 0
        for _ in range(9):
            server.site.catch_up()
        assert server.ask(body({"text": TEXT}))[1]["behind"] == 0


class Queueing(MemoryBus):
    """A log whose clients have records in their queues."""

    def queued(self) -> dict[str, Queued]:
        return {"fetched": Queued(7, 5_000), "produced": Queued()}


def test_it_says_what_it_takes_of_its_memory_and_has_fetched(tmp_path: Path) -> None:
    with begun(tmp_path, worker={"memory": "512MiB"}, index={"shards": 2}) as server:
        server.service.export(Queueing())

        taken = partial(server.metrics.value, table.MEMORY_BYTES)
        share = partial(server.metrics.value, table.MEMORY_SHARE_BYTES)
        queued = partial(server.metrics.value, table.QUEUED_MESSAGES)
        shares = server.site.settings.memory()
        assert queued("fetched") == 7
        assert taken("fetched") == 5_000
        assert share("fetched") == 2 * shares.log_reader
        assert share("worker") == 512 << 20
        stores: list[BandStore] = []
        server.site.following.use(lambda found: stores.extend(found.values()))
        assert taken("postings") == sum(one.held_bytes() for one in stores) > 0
        assert share("write_buffers") == shares.write_buffers
        # It produces nothing.
        assert queued("produced") is None


def test_a_frame_of_another_layout_is_not_passed_over(tmp_path: Path) -> None:
    with begun(tmp_path) as server:
        bus, topology = server.site.bus, server.site.topology
        bus.append(Outgoing(topology.fingerprints, 0, None, encode(FINGERPRINTS)))
        with pytest.raises(FrameError):
            server.site.catch_up()


def test_open_requests_are_answered_before_it_ends(tmp_path: Path) -> None:
    """A query that waits for its shard when the server is told to stop is answered."""
    with ExitStack() as stack:
        site = stack.enter_context(Site(tmp_path))
        site.catch_up()
        asked, told = threading.Event(), threading.Event()
        metrics, stopping = Metrics(), threading.Event()
        service = stack.enter_context(QueryService(site.settings, metrics, stopping))

        def slow(requests: Sequence[bytes]) -> list[Said]:
            asked.set()
            assert told.wait(DEADLINE)
            return service.query(requests)

        with ExitStack() as serves:
            port = serves.enter_context(answering(AT, slow, service.most_bytes, PATIENT))
            client = stack.enter_context(
                closing(http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE))
            )
            client.request("POST", "/v1/query", body({"text": TEXT}), JSON)
            assert asked.wait(DEADLINE)
            ending = threading.Thread(target=serves.pop_all().close)
            ending.start()
            told.set()
            assert client.getresponse().status == 503
            client.close()
            ending.join(DEADLINE)
            assert not ending.is_alive()
