"""Attacks on what is read beside queries, and on the page: nobody keeps others out, or gets in."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from localkafka.broker import wait_until
from tests.support.breadth import slow
from tests.worker.probes.attacked import DEADLINE, connect, rest, status_of, whole
from worker.cli.demo_page import page_of
from worker.metrics.metrics import Metrics
from worker.page import VIEWS
from worker.probes import server as probes
from worker.probes.probes import Health, Pages
from worker.serve.openapi import described
from worker.settings.model import Settings

TEXT = "The quick brown fox jumps over the lazy dog, and then it jumps back again."
ALL = 400
STREAMS = 64
POSTED = ("/v1/comparison", "/v1/corrections", "/v1/session", "/v1/query")
ROUTES = [
    (method.upper(), path.replace("{id}", "a"))
    for path, methods in json.loads(described())["paths"].items()
    for method in methods
] + [("GET", path) for path in (*VIEWS, "/static/app.js", "/v1/openapi.json") if "{" not in path]


@dataclass
class Attacked:
    """A server with a page, and its listener for probes."""

    port: int
    probes: int

    def status(self, port: int, path: str) -> int:
        """Ask until there is an answer; clients that are refused a place come back."""
        until = time.monotonic() + DEADLINE
        while True:
            try:
                with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as client:
                    client.request("GET", path)
                    answer = client.getresponse()
                    answer.read()
                    if answer.status != 503 or time.monotonic() > until:
                        return answer.status
            except (OSError, http.client.HTTPException):
                if time.monotonic() > until:
                    raise

    def answers(self) -> None:
        """Both listeners answer a client that behaves."""
        assert self.status(self.probes, "/healthz") == 200
        for path in ("/", "/v1/duplicates", "/v1/flow"):
            assert self.status(self.port, path) == 200


@pytest.fixture(scope="module")
def attacked() -> Iterator[Attacked]:
    settings = Settings.model_validate(
        {"app": "hit", "serve": {"port": 0}, "index": {"cache_bytes": 1 << 20, "shards": 2}}
    )
    values = [json.dumps({"id": f"d{n}", "text": TEXT}).encode() for n in range(10)]
    found = probes.serving("127.0.0.1", 0, Pages(Metrics(), Health).answer)
    with (
        found as health,
        page_of(settings, values, iter(()), threading.Event()) as address,
    ):
        yield Attacked(urlsplit(address).port or 0, health)


def sent(port: int, method: str, path: str, headers: str, body: bytes = b"{}") -> bytes:
    """Return the answer to a request with these headers, each of which ends with CR LF."""
    length = f"Content-Length: {len(body)}\r\n" if method == "POST" else ""
    head = f"{method} {path} HTTP/1.1\r\nConnection: close\r\n{headers}{length}\r\n"
    with connect(port) as client:
        client.sendall(head.encode() + (body if method == "POST" else b""))
        return rest(client)


JSON = "Content-Type: application/json\r\n"


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_no_route_is_reached_by_another_name_or_from_another_page(
    attacked: Attacked, method: str, path: str
) -> None:
    def status(headers: str) -> int:
        return status_of(sent(attacked.port, method, path, headers + JSON))

    assert status("Host: rebound.example\r\n") == 421
    assert status("Host: localhost\r\nHost: rebound.example\r\n") in {400, 421}
    assert status("Host: localhost\r\nOrigin: https://evil.example\r\n") == 403
    assert status("Host: localhost\r\nOrigin: null\r\n") == 403
    if path.startswith("/v1/"):
        assert status("Host: localhost\r\nSec-Fetch-Site: cross-site\r\n") == 403


@pytest.mark.parametrize("path", POSTED)
def test_bodies_are_bounded_declared_and_json(attacked: Attacked, path: str) -> None:
    host = "Host: localhost\r\n"
    assert status_of(sent(attacked.port, "POST", path, host, b"{}")) == 415
    with connect(attacked.port) as client:
        head = f"POST {path} HTTP/1.1\r\n{host}{JSON}Content-Length: {1 << 40}\r\n\r\n"
        client.sendall(head.encode())
        assert status_of(whole(client)) == 413
    assert status_of(sent(attacked.port, "POST", path, host + JSON, b"x" * (16 << 20))) == 413
    chunked = f"{host}{JSON}Transfer-Encoding: chunked\r\n"
    with connect(attacked.port) as client:
        client.sendall(f"POST {path} HTTP/1.1\r\n{chunked}\r\n2\r\n[]\r\n0\r\n\r\n".encode())
        assert status_of(whole(client)) == 400
    with connect(attacked.port) as client:
        client.sendall(f"POST {path} HTTP/1.1\r\n{chunked}\r\n".encode())
        client.sendall(b"400000\r\n" + b"x" * (4 << 20) + b"\r\n0\r\n\r\n")
        assert status_of(whole(client)) == 413
    for body in (b"", b"\xff", b"[" * 100_000, b'{"left":' * 100_000, b"null", b"[]"):
        assert status_of(sent(attacked.port, "POST", path, host + JSON, body)) == 400


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/documents?id=%00%1b%5b2J%e2%80%ae", 200),
        ("/v1/documents?id=%ff", 200),
        ("/v1/documents?header=%0d%0aX:%201=%0a", 200),
        ("/v1/documents?id=" + "x" * 10_000, 200),
        ("/v1/documents/%00%ff%2f..%2f%1b/group", 404),
        ("/v1/groups/%e2%80%ae1", 404),
        ("/v1/groups/" + "9" * 10_000, 404),
        ("/v1/groups?cursor=%ff%1b", 400),
        ("/v1/groups?sort=%3Cscript%3E", 400),
        ("/v1/duplicates?cursor=%1b", 400),
        ("/static/..%2f..%2fqueries%2frights.py", 404),
        ("/static/%2e%2e/page.html", 404),
        ("/v1/none", 404),
        ("//evil.example/", 404),
    ],
)
def test_hostile_addresses_get_an_inert_answer(attacked: Attacked, path: str, status: int) -> None:
    received = sent(attacked.port, "GET", path, "Host: localhost\r\n")
    head, _, body = received.partition(b"\r\n\r\n")
    assert status_of(received) == status
    lines = head.lower().split(b"\r\n")
    assert b"x-content-type-options: nosniff" in lines
    assert b"content-type: application/json" in lines
    assert not any(line.startswith((b"x: ", b"location:")) for line in lines)
    assert not any(character < 0x20 and character != 0x0A for character in body)
    json.loads(body)


def test_streams_of_many_clients_keep_nobody_out(attacked: Attacked) -> None:
    request = b"GET /v1/duplicates/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
    opened = 0
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(attacked.port)) for _ in range(ALL)]
        for client in clients:
            try:
                client.sendall(request)
            except ConnectionError:  # Others wanted its place.
                continue
        attacked.answers()
        for client in clients:
            try:
                received = client.recv(65_536)
            except ConnectionError:
                continue
            opened += received.startswith(b"HTTP/1.1 200 ")
            assert not received or status_of(received) in {200, 503}
        assert 0 < opened <= STREAMS
    # Their places are free again.
    assert attacked.status(attacked.port, "/v1/flow") == 200
    wait_until(lambda: is_streamed(attacked.port, request), DEADLINE, "a place for a stream")


def is_streamed(port: int, request: bytes) -> bool:
    with connect(port) as client:
        client.sendall(request)
        return client.recv(65_536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        slow(b"GET /v1/flow HTTP/1.1\r\nHost: local"),
        slow(
            f"POST /v1/comparison HTTP/1.1\r\nHost: localhost\r\n{JSON}".encode()
            + b"Content-Length: 9\r\n\r\n{"
        ),
    ],
)
def test_clients_that_are_slow_keep_nobody_out(attacked: Attacked, begun: bytes) -> None:
    with ExitStack() as stack:
        viewer = stack.enter_context(connect(attacked.port))
        viewer.sendall(b"GET /v1/duplicates/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert status_of(viewer.recv(65_536)) == 200
        for _ in range(ALL):
            client = stack.enter_context(connect(attacked.port))
            try:
                client.sendall(begun)
            except ConnectionError:  # Others wanted its place.
                continue
        attacked.answers()
        # A viewer who was there keeps the stream.
        viewer.settimeout(DEADLINE)
        assert b"\n\n" in viewer.recv(65_536)
