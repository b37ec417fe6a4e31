"""What is read over HTTP beside queries, and that all of it is as it is described."""

from __future__ import annotations

import http.client
import json
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from localkafka.broker import wait_until
from tests.support.corpus import examples
from worker.cli.demo_page import page_of
from worker.serve.openapi import described
from worker.serve.routes import ROUTES
from worker.settings.model import Settings

TEXT = "The quick brown fox jumps over the lazy dog, and then it jumps back again."
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "http.md"


def document(ident: str, text: str) -> bytes:
    return json.dumps({"id": ident, "text": text}).encode()


class Server:
    """A server about an in-process log, and what is fed to it."""

    def __init__(self) -> None:
        self.fed: SimpleQueue[bytes] = SimpleQueue()
        self.port = 0

    def later(self) -> Iterator[bytes | None]:
        while True:
            try:
                yield self.fed.get_nowait()
            except Empty:
                yield None

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def get(self, path: str) -> tuple[int, Any]:
        return self._asked("GET", path, None)

    def post(self, path: str, body: object) -> tuple[int, Any]:
        return self._asked("POST", path, json.dumps(body))

    def _asked(self, method: str, path: str, body: str | None) -> tuple[int, Any]:
        with closing(self.connect()) as connection:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def sequence(self, ident: str) -> int:
        return int(self.get(f"/v1/documents?id={quote(ident)}")[1]["documents"][0]["sequence"])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    settings = Settings.model_validate(
        {"app": "read", "serve": {"port": 0}, "index": {"cache_bytes": 1 << 20, "shards": 2}}
    )
    values = [
        document("a", TEXT),
        document("b", TEXT + " So there!"),
        document("c/../d", TEXT.upper()),
        document("e", "Something else entirely."),
        b"no JSON",
        *(document(f"n{number}", TEXT) for number in range(20)),
    ]
    one = Server()
    with page_of(settings, values, one.later(), threading.Event()) as address:
        one.port = urlsplit(address).port or 0
        yield one


def test_the_latest_duplicates_come_first_and_by_page(server: Server) -> None:
    whole = server.get("/v1/duplicates?limit=100")[1]
    assert whole["next"] is None
    found = whole["duplicates"]
    assert {one["id"] for one in found} >= {"b", "c/../d", "n0", "n19"}
    assert not {"a", "e"} & {one["id"] for one in found}
    paged: list[Any] = []
    cursor = ""
    while cursor is not None:
        page = server.get("/v1/duplicates?limit=7" + (f"&cursor={cursor}" if cursor else ""))[1]
        paged += page["duplicates"]
        cursor = page["next"]
    assert paged == found
    latest = next(one for one in found if one["id"] == "b")
    assert latest["text"] == TEXT + " So there!"
    (match,) = latest["matches"]
    assert (match["id"], match["sequence"]) == ("a", server.sequence("a"))
    assert re.fullmatch(r"[01]-\d+", latest["source"])


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/v1/duplicates?limit=0", "limit: got '0', takes 1 to 100"),
        ("/v1/duplicates?limit=101", "takes 1 to 100"),
        ("/v1/duplicates?limit=%D9%A3", "takes 1 to 100"),
        ("/v1/duplicates?cursor=-1", "cursor: got '-1'"),
        ("/v1/documents", "takes one of id"),
        ("/v1/documents?id=a&sequence=1", "takes one of id"),
        (f"/v1/documents?sequence={1 << 63}", "sequence: got"),
        (f"/v1/documents?sequence={'9' * 5000}", "sequence: got"),
    ],
)
def test_parameters_that_are_wrong_are_refused_with_the_reason(
    server: Server, path: str, reason: str
) -> None:
    status, said = server.get(path)
    assert status == 400
    assert reason in said["error"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "missing required field"),
        ({"left": {"text": "a"}, "right": {}}, "right: takes one of text, sequence, match"),
        ({"left": {"match": "a"}, "right": {"text": "a"}}, "unknown field `match`"),
        ({"left": {"text": "a", "sequence": 1}, "right": {"text": "a"}}, "left: takes one"),
        ({"left": {"txt": "a"}, "right": {"text": "a"}}, "unknown field"),
    ],
)
def test_comparisons_that_are_none_are_refused(server: Server, body: object, reason: str) -> None:
    status, said = server.post("/v1/comparison", body)
    assert status == 400
    assert reason in said["error"]


def test_a_connection_goes_on_after_a_refusal(server: Server) -> None:
    given = {"Content-Type": "application/json"}
    with closing(server.connect()) as connection:
        for path, body in (("/v1/comparison", "[]"), ("/v1/session", "{}"), ("/v1/query", "{}")):
            for _ in range(2):
                connection.request("POST", path, body, given)
                answer = connection.getresponse()
                assert (answer.status, "error" in json.loads(answer.read())) == (400, True)
        connection.request("GET", "/v1/documents")
        assert connection.getresponse().status == 400


def test_two_documents_are_compared(server: Server) -> None:
    left = {"sequence": server.sequence("c/../d")}
    for right in ({"match": "a"}, {"sequence": server.sequence("a")}, {"text": TEXT}):
        status, said = server.post("/v1/comparison", {"left": left, "right": right})
        assert status == 200
        assert (said["verdict"], said["similarity"], said["same_text"]) == ("duplicate", 1, True)
        assert said["left"]["id"] == "c/../d"
        assert "".join(one["left"] for one in said["spans"]) == TEXT.upper()
        assert "".join(one["right"] for one in said["spans"]) == TEXT
        assert {one["kind"] for one in said["spans"]} == {"same", "aside"}
        assert len(said["shared"]) == said["bands"]


def test_a_text_that_cannot_be_judged_is_compared_with_nothing(server: Server) -> None:
    status, said = server.post("/v1/comparison", {"left": {"text": "\t"}, "right": {"text": "a"}})
    assert (status, said["verdict"], said["spans"]) == (200, None, [])
    assert said["reason"] == said["left"]["gone"] == "empty-text: the text is empty or blank"


def test_what_is_gone_is_said_to_be_gone(server: Server) -> None:
    left = {"sequence": server.sequence("b")}
    said = server.post("/v1/comparison", {"left": left, "right": {"match": "e"}})[1]
    assert (said["verdict"], said["reason"]) == (None, "the index no longer has it")
    said = server.post("/v1/comparison", {"left": left, "right": {"sequence": 1 << 60}})[1]
    assert "retention has removed it" in said["right"]["gone"]
    assert server.get(f"/v1/documents?sequence={1 << 60}")[0] == 404


def test_documents_are_found_by_id_by_header_and_by_number(server: Server) -> None:
    found = server.get("/v1/documents?id=c/../d")[1]
    assert [one["id"] for one in found["documents"]] == ["c/../d"]
    assert (found["documents"][0]["verdict"], found["complete"]) == ("duplicate", True)
    found = server.get("/v1/documents?header=neardup-verdict%3Dunique")[1]
    assert {one["id"] for one in found["documents"]} == {"a", "e"}
    assert len(server.get("/v1/documents?header=neardup-verdict")[1]["documents"]) >= 24
    whole = server.get(f"/v1/documents?sequence={server.sequence('e')}")[1]
    assert whole["documents"][0]["text"] == "Something else entirely."
    assert server.get("/v1/documents?id=nobody")[1]["documents"] == []


def test_the_flow_says_what_each_stage_has_left_and_what_was_rejected(server: Server) -> None:
    flow = server.get("/v1/flow")[1]
    assert [(one["name"], one["lag"]) for one in flow["stages"]] == [
        ("fingerprint", 0), ("index", 0), ("route", 0),
    ]  # fmt: skip
    assert [(one["owner"], one["restoring"]) for one in flow["shards"]] == [
        ("this process", False)
    ] * 2
    (rejected,) = flow["rejected"]
    assert (rejected["reason"], rejected["count"]) == ("not-json", 1)
    assert rejected["command"] == "neardup redrive --app read --reason not-json"
    assert flow["trouble"] is None


def test_the_stream_tells_of_duplicates_and_ends_with_the_server(server: Server) -> None:
    with closing(server.connect()) as connection:
        connection.request("GET", "/v1/duplicates/stream")
        answer = connection.getresponse()
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert answer.readline() == b"retry: 2000\n"
        server.fed.put(document("fresh", TEXT + "\n\ndata: x"))
        line = b""
        while not line.startswith(b"data: "):
            line = answer.readline()
        news = json.loads(line.removeprefix(b"data: "))
        assert (news["of"], news["duplicates"][0]["id"]) == (1, "fresh")


def test_streams_are_bounded_and_the_newest_is_told_to_come_back(server: Server) -> None:
    with ExitStack() as stack:
        for _ in range(64):
            connection = stack.enter_context(closing(server.connect()))
            connection.request("GET", "/v1/duplicates/stream")
            assert connection.getresponse().readline() == b"retry: 2000\n"
        status, said = server.get("/v1/duplicates/stream")
        assert (status, said["error"]) == (503, "too many streams are open; try again")
        assert server.get("/v1/duplicates?limit=1")[0] == 200

    def gone() -> bool:
        with closing(server.connect()) as connection:
            connection.request("GET", "/v1/duplicates/stream")
            return connection.getresponse().status == 200

    wait_until(gone, 30, "the clients that left to be noticed")


def test_a_server_ends_though_a_stream_is_open() -> None:
    settings = Settings.model_validate({"serve": {"port": 0}, "index": {"cache_bytes": 1 << 20}})
    with page_of(settings, [], iter(()), threading.Event()) as address:
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(address).port, timeout=30)
        connection.request("GET", "/v1/duplicates/stream")
        answer = connection.getresponse()
        assert answer.readline() == b"retry: 2000\n"
    with closing(connection):
        assert b"data:" not in answer.read()


def test_the_description_has_all_routes_and_no_loose_end() -> None:
    whole = json.loads(described())
    routes = set(whole["paths"])
    assert {"/v1/query", "/v1/groups/{id}", "/v1/comparison", "/v1/flow"} <= routes
    assert routes == {one.path.replace(":path", "") for one in ROUTES}
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', described().decode()))
    assert named <= set(whole["components"]["schemas"])


def test_the_server_gives_its_description(server: Server) -> None:
    assert server.get("/v1/openapi.json") == (200, json.loads(described()))


def test_the_examples_of_the_page_run(server: Server) -> None:
    block = re.search(r"<!-- curl -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    commands = block[1].replace("\\\n", " ").splitlines()
    assert len(commands) > 4
    for command in commands:
        words = shlex.split(command.replace(":9465", f":{server.port}"))
        done = subprocess.run([*words, "--fail"], capture_output=True, check=True, timeout=60)
        assert json.loads(done.stdout)


# What a document is, and what a text must have, is up to the settings: a query may be of the form
# that is described, and be refused.
CONFIGURATION = """
[[operations]]
include-path = "/v1/query"
checks.positive_data_acceptance.enabled = false

[[operations]]
include-path = "/v1/corrections"
include-method = "POST"
checks.positive_data_acceptance.enabled = false
"""


@pytest.mark.slow
@pytest.mark.needs("schemathesis")
def test_the_api_is_as_it_is_described(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"app": "read", "serve": {"port": 0}, "index": {"cache_bytes": 1 << 20, "shards": 2}}
    )
    values = [b'{"id": "%d", "text": "%s"}' % (n, TEXT.encode()) for n in range(10)]
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    with page_of(settings, [*values, b"no JSON"], iter(()), threading.Event()) as address:
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/v1/openapi.json",
             "--exclude-path", "/v1/duplicates/stream",  # It has no end.
             "--max-examples", str(examples(8, 20)), "--seed", "1", "--generation-database", "none",
             "--request-timeout", "20", "--no-color", "--warnings", "off"],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
