"""The listener for queries: whom it refuses, and how; it drops nobody whom it answers."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack

import pytest
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tests.worker.probes.attacked import BODY, DEADLINE, connect, post, rest, status_of, whole
from worker.probes.server import listening
from worker.serve.queries import Respond, Said
from worker.serve.server import Limits, answering, serving
from worker.settings.sections import ServeSection

MOST_BYTES = 1 << 20
JSON = "Content-Type: application/json\r\n"


def echo(bodies: Sequence[bytes]) -> list[Said]:
    return [*bodies]


def answers(
    respond: Respond = echo, limits: Limits | None = None, *hosts: str
) -> AbstractContextManager[int]:
    at = ServeSection(port=0, hosts=hosts)
    return answering(at, respond, MOST_BYTES, limits or Limits(seconds=300))


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with answers(echo, None, "dedup.example.org", "[2001:db8::1]") as found:
        yield found


def said(client: socket.socket) -> tuple[int, str]:
    """Return the status and the reason, which is JSON on one line."""
    client.shutdown(socket.SHUT_WR)
    received = rest(client)
    body = received.partition(b"\r\n\r\n")[2]
    if body == BODY:
        return status_of(received), ""
    assert body.endswith(b"}\n")
    return status_of(received), json.loads(body)["error"]


def ask(port: int, head: str, body: bytes) -> tuple[int, str]:
    with connect(port) as client:
        client.sendall(head.encode() + b"\r\n" + body)
        return said(client)


def query(port: int, headers: str) -> tuple[int, str]:
    head = f"POST /v1/query HTTP/1.1\r\nContent-Length: {len(BODY)}\r\n{headers}"
    return ask(port, head, BODY)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1:9465",
        "[::1]:9465",
        "dedup.example.org",
        "[2001:db8::1]",
    ],
)
def test_its_own_names_may_be_called(port: int, host: str) -> None:
    assert query(port, f"Host: {host}\r\n{JSON}")[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:9465",
        "localhost@evil.example",
        "evil.example/localhost",
        "localhost, evil.example",
        "localhost\r\nHost: evil.example",
        "10.0.0.1",
        "",
    ],
)
def test_another_host_is_refused(port: int, host: str) -> None:
    status, reason = query(port, f"Host: {host}\r\n{JSON}")
    assert status == 421 or (status == 400 and "\r\n" in host)
    assert status == 400 or "serve.hosts" in reason


def test_a_request_without_a_host_is_refused(port: int) -> None:
    assert query(port, JSON)[0] == 400


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:9465", "http://localhost:9465", 200),
        ("dedup.example.org", "http://dedup.example.org", 200),
        ("dedup.example.org:80", "http://dedup.example.org", 200),
        ("[2001:DB8::1]:9465", "http://[2001:db8::1]:9465", 200),
        ("localhost:9465", "http://localhost:9466", 403),
        ("localhost:9465", "http://localhost", 403),
        ("localhost:9465", "https://localhost:9465", 403),
        ("localhost:9465", "http://127.0.0.1:9465", 403),
        ("localhost:9465", "http://dedup.example.org:9465", 403),
        ("localhost", "http://evil.example", 403),
        ("localhost", "http://localhost.evil.example", 403),
        ("localhost", "http://localhost\r\nOrigin: http://evil.example", 403),
        ("localhost", "null", 403),
        ("localhost", "", 403),
    ],
)
def test_pages_of_others_may_not_ask(port: int, host: str, origin: str, status: int) -> None:
    assert query(port, f"Host: {host}\r\nOrigin: {origin}\r\n{JSON}")[0] == status


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("text/plain; application/json", 415),
        ("application/jsonp", 415),
    ],
)
def test_a_body_must_be_declared_as_json(port: int, kind: str, status: int) -> None:
    assert query(port, f"Host: localhost\r\nContent-Type: {kind}\r\n")[0] == status


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "PUT", "DELETE", "HEAD"])
def test_queries_are_posted(port: int, method: str) -> None:
    with connect(port) as client:
        client.sendall(f"{method} /v1/query HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        client.shutdown(socket.SHUT_WR)
        received = rest(client)
    assert status_of(received) == 405
    assert b"allow: POST\r\n" in received
    assert b"access-control" not in received.lower()


CHUNKED = f"POST /v1/query HTTP/1.1\r\nHost: localhost\r\n{JSON}Transfer-Encoding: chunked\r\n"


def test_a_body_may_come_in_chunks(port: int) -> None:
    half = len(BODY) // 2
    parts = b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in (BODY[:half], BODY[half:]))
    assert ask(port, CHUNKED, parts + b"0\r\n\r\n") == (200, "")


def test_chunks_are_refused_once_they_are_too_many(port: int) -> None:
    chunk = b"10000\r\n%s\r\n" % (b"x" * 0x10000)
    with connect(port) as client:
        client.sendall(CHUNKED.encode() + b"\r\n" + chunk * (MOST_BYTES // 0x10000 + 1))
        assert told(client)[0] == 413


def test_a_long_body_is_refused_before_it_is_read(port: int) -> None:
    with connect(port) as client:
        client.sendall(post(b"", length=MOST_BYTES + 1))
        received = whole(client)
    assert status_of(received) == 413
    assert f"may have {MOST_BYTES}".encode() in received


def test_a_client_that_sends_all_of_a_long_body_reads_the_refusal(port: int) -> None:
    with connect(port) as client:
        client.sendall(post(b"x" * (16 << 20)))
        assert said(client)[0] == 413


def test_a_client_that_waits_for_leave_gets_it(port: int) -> None:
    head, _, _ = post(BODY).partition(b"\r\n\r\n")
    with connect(port) as client:
        client.sendall(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert client.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(BODY)
        assert whole(client).startswith(b"HTTP/1.1 200 ")


OFFER = b"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n\r\n"


def test_an_offer_of_another_protocol_is_ignored(port: int) -> None:
    head, _, _ = post(BODY).partition(b"\r\n\r\n")
    with connect(port) as client:
        client.sendall(head + OFFER + BODY)
        assert said(client) == (200, "")


def test_a_connection_carries_many_requests(port: int) -> None:
    with connect(port) as client:
        for number in range(3):
            client.sendall(post(b"%d" % number))
            assert whole(client).endswith(b"\r\n\r\n%d" % number)
        client.sendall(b"".join(post(b"n%d" % number) for number in range(50)))
        client.shutdown(socket.SHUT_WR)
        received = rest(client)
    assert [b"n%d" % number in received for number in range(50)] == [True] * 50


@pytest.mark.parametrize("sent", [b"x\r\n\r\n", b"GET / HTTP/99\r\n\r\n", b"\0\0\r\n\r\n"])
def test_what_is_no_request_is_refused(port: int, sent: bytes) -> None:
    with connect(port) as client:
        client.sendall(sent)
        status, reason = said(client)
    assert status == 400
    assert "not a request of HTTP/1.1" in reason


class Held:
    """Answers once it is told to."""

    def __init__(self) -> None:
        self.told = threading.Event()
        self.asked = threading.Semaphore(0)

    def __call__(self, bodies: Sequence[bytes]) -> list[Said]:
        self.asked.release()
        assert self.told.wait(DEADLINE)
        return echo(bodies)


def test_while_all_are_being_answered_the_newest_is_told_to_come_back() -> None:
    held = Held()
    limits = Limits(seconds=300, connections=1, patience_seconds=0, refused=4)
    with ExitStack() as stack:
        port = stack.enter_context(answers(held, limits))
        stack.callback(held.told.set)
        client = stack.enter_context(connect(port))
        client.sendall(post(BODY))
        assert held.asked.acquire(timeout=DEADLINE)
        for _ in range(20):
            with connect(port) as newest:
                newest.sendall(post(BODY))
                newest.shutdown(socket.SHUT_WR)
                received = rest(newest)
            assert status_of(received) == 503
            assert b"\r\nRetry-After: 1\r\n" in received
        held.told.set()
        assert whole(client).endswith(BODY)


def test_clients_that_are_refused_and_have_gone_leave_no_trace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listener = listening("127.0.0.1", 0, "", "")
    port = listener.getsockname()[1]
    for _ in range(3):
        connect(port).close()
    with serving(listener, stream, Limits(connections=0)), connect(port) as client:
        client.sendall(post(BODY))
        assert told(client) == (503, "too many connections; try again")
    assert not caplog.records


def test_what_is_posted_takes_a_bounded_memory_and_the_slowest_gives_up() -> None:
    limits = Limits(seconds=300, connections=500)
    part = MOST_BYTES // 2
    with ExitStack() as stack:
        port = stack.enter_context(answers(echo, limits))
        slow = [stack.enter_context(connect(port)) for _ in range(140)]
        for client in slow:
            client.sendall(post(b"x" * part, length=MOST_BYTES))
        # 64 MiB have room for 128 halves.
        for client in slow[:5]:
            status, reason = told(client)
            assert (status, reason) == (503, "too many bytes are being posted; try again")
        with connect(port) as quick:
            quick.sendall(post(b"y" * MOST_BYTES))
            quick.shutdown(socket.SHUT_WR)
            assert status_of(rest(quick)) == 200
        slow[-1].sendall(b"x" * (MOST_BYTES - part))
        slow[-1].shutdown(socket.SHUT_WR)
        assert status_of(rest(slow[-1])) == 200


def told(client: socket.socket) -> tuple[int, str]:
    received = whole(client)
    return status_of(received), json.loads(received.partition(b"\r\n\r\n")[2])["error"]


def test_a_query_that_takes_too_long_is_given_up() -> None:
    held = Held()
    with ExitStack() as stack:
        port = stack.enter_context(answers(held, Limits(seconds=1.0)))
        stack.callback(held.told.set)
        with connect(port) as client:
            client.sendall(post(BODY))
            assert told(client) == (503, "there was no answer within 0.5 s")


async def stream(scope: Scope, receive: Receive, send: Send) -> None:
    """Send for as long as somebody listens."""
    await StreamingResponse(forever())(scope, receive, send)


async def forever() -> AsyncIterator[bytes]:
    while True:
        yield b"x" * 4_096
        await asyncio.sleep(0)


def endless(limits: Limits, stack: ExitStack) -> int:
    listener = listening("127.0.0.1", 0, "", "")
    port: int = listener.getsockname()[1]
    stack.enter_context(serving(listener, stream, limits))
    return port


@pytest.mark.parametrize("reads", [True, False])
def test_it_ends_though_clients_hang_in_all_ways(*, reads: bool) -> None:
    with ExitStack() as stack:
        port = endless(Limits(seconds=1.0), stack)
        clients = [stack.enter_context(connect(port)) for _ in range(6)]
        for client, sent in zip(
            clients, [b"", b"GET /", post(b"{", length=9), post(BODY), post(BODY)], strict=False
        ):
            client.sendall(sent)
        if reads:
            assert clients[3].recv(1)
        stack.pop_all().close()


def test_it_ends_at_once_though_a_client_reads_none_of_many_answers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    large = b"x" * (8 << 20)

    def respond(bodies: Sequence[bytes]) -> list[Said]:
        return [large for _ in bodies]

    with ExitStack() as stack:
        port = stack.enter_context(answers(respond, Limits(seconds=300)))
        client = stack.enter_context(connect(port))
        client.sendall(post(BODY) * 50)
        assert client.recv(1, socket.MSG_PEEK)
        stack.pop_all().close()
    assert not caplog.records


def test_what_is_sent_to_a_client_that_goes_on_reading_has_no_deadline() -> None:
    with ExitStack() as stack:
        port = endless(Limits(seconds=0.2), stack)
        client = stack.enter_context(connect(port))
        client.sendall(post(BODY))
        for _ in range(500):
            assert client.recv(1 << 20)
        stack.pop_all().close()


def test_what_a_client_has_left_before_its_turn_is_not_computed() -> None:
    asked: list[bytes] = []
    held = Held()

    def respond(bodies: Sequence[bytes]) -> list[Said]:
        asked.extend(bodies)
        return held(bodies)

    with ExitStack() as stack:
        port = stack.enter_context(answers(respond))
        stack.callback(held.told.set)
        first = stack.enter_context(connect(port))
        first.sendall(post(b"first"))
        assert held.asked.acquire(timeout=DEADLINE)
        with connect(port) as gone:
            gone.sendall(post(b"gone"))
            go_round(port)  # The server has read what came before.
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        go_round(port)
        last = stack.enter_context(connect(port))
        last.sendall(post(b"last"))
        held.told.set()
        assert whole(first).endswith(b"first")
        assert whole(last).endswith(b"last")
    assert asked == [b"first", b"last"]


def go_round(port: int) -> None:
    """Ask for something that nobody computes."""
    with connect(port) as client:
        client.sendall(b"GET /v1/session HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert whole(client).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (post(BODY), 200),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"GET /v1/none HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        (b"no request\r\n\r\n", 400),
    ],
)
def test_each_answer_names_the_application(sent: bytes, status: int) -> None:
    at = ServeSection(port=0)
    with answering(at, echo, MOST_BYTES, app="news") as port, connect(port) as client:
        client.sendall(sent)
        received = whole(client)
    assert status_of(received) == status
    assert b"\r\nneardup-application: news\r\n" in received
