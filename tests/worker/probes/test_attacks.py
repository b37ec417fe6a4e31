"""Clients on real sockets: none can take from a server what others need."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import NoReturn

import pytest

from tests.worker.probes.attacked import (
    DEADLINE,
    SERVERS,
    Attacked,
    connect,
    rest,
    status_of,
    whole,
)

LOCAL = "127.0.0.1"
LONG = 300.0
HEAD_BYTES = 16 << 10
LINGER = b"\x01\x00\x00\x00\x00\x00\x00\x00"
"""On, 0 s: a close resets the connection."""


@pytest.fixture(params=SERVERS)
def attacked(request: pytest.FixtureRequest) -> Attacked:
    return SERVERS[request.param]


def serving(
    attacked: Attacked,
    respond: Callable[[], bytes] = lambda: b"ok",
    *,
    host: str = LOCAL,
    seconds: float = LONG,
    connections: int = 32,
) -> AbstractContextManager[int]:
    return attacked.serving(respond, host, seconds, connections)


def ask(attacked: Attacked, port: int, host: str = LOCAL) -> bytes:
    """Return what comes as the answer to a whole request."""
    called = f"[{host}]" if ":" in host else host
    with connect(port, host) as client:
        client.sendall(attacked.request(called))
        client.shutdown(socket.SHUT_WR)
        return rest(client)


def send_forever(client: socket.socket) -> NoReturn:
    while True:
        client.sendall(b"x" * 1_000)


def has_ipv6() -> bool:
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
    return True


@pytest.mark.parametrize("host", [LOCAL, "::1", "::", "localhost", "0.0.0.0"])  # noqa: S104 -- what users set
def test_requests_are_answered_on_every_kind_of_address(attacked: Attacked, host: str) -> None:
    if ":" in host and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    own = {"localhost": LOCAL, "0.0.0.0": LOCAL, "::": "::1"}.get(host, host)  # noqa: S104 -- as above
    with serving(attacked, host=host) as port:
        assert ask(attacked, port, own).endswith(b"\r\n\r\nok")
        if host == "::":
            assert ask(attacked, port, LOCAL).endswith(b"\r\n\r\nok")
    with pytest.raises(ConnectionRefusedError):
        connect(port, own)


@pytest.mark.parametrize(
    ("name", "sent"), [(name, sent) for name, one in SERVERS.items() for sent in one.begun]
)
def test_a_client_that_sends_no_whole_request_is_dropped(name: str, sent: bytes) -> None:
    with serving(SERVERS[name], seconds=0.1) as port, connect(port) as client:
        client.sendall(sent)
        assert rest(client) == b""


def test_a_client_that_sends_a_little_now_and_then_is_dropped(attacked: Attacked) -> None:
    with serving(attacked, seconds=0.5) as port, connect(port) as client:
        client.sendall(attacked.request(LOCAL).partition(b"\r\n\r\n")[0])
        client.settimeout(0.02)
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until and not is_dropped(client):
            pass
        assert time.monotonic() < until


def is_dropped(client: socket.socket) -> bool:
    """Send a little, and return whether the server has closed the connection."""
    try:
        client.sendall(b"\r\nX: 1")
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_a_client_that_never_stops_sending_is_dropped(attacked: Attacked) -> None:
    with serving(attacked, seconds=1.0) as port, connect(port) as client:
        client.sendall(attacked.request(LOCAL))
        assert whole(client).endswith(b"\r\n\r\nok")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            send_forever(client)


def test_a_client_that_reads_nothing_is_dropped(attacked: Attacked) -> None:
    large = b"x" * (32 << 20)
    with serving(attacked, lambda: large, seconds=0.5) as port, connect(port) as client:
        client.sendall(attacked.request(LOCAL))
        assert client.recv(1, socket.MSG_PEEK)  # The answer has begun.
        with connect(port) as other:  # It ends after the first, for it came later.
            assert rest(other) == b""
        assert len(rest(client)) < len(large)


def test_clients_that_read_nothing_keep_nobody_out(attacked: Attacked) -> None:
    large = b"x" * (16 << 20)
    with ExitStack() as stack:
        port = stack.enter_context(serving(attacked, lambda: large, connections=8))
        for _ in range(30):
            client = stack.enter_context(connect(port))
            client.sendall(attacked.request(LOCAL))
        assert ask(attacked, port).endswith(large)


def test_of_many_requests_at_once_two_are_answered_while_the_client_reads_nothing(
    attacked: Attacked,
) -> None:
    large = b"x" * (16 << 20)
    answered = []

    def respond() -> bytes:
        answered.append(1)
        return large if len(answered) == 1 else b"ok"

    with serving(attacked, respond) as port, connect(port) as client:
        client.settimeout(1.0)
        with suppress(TimeoutError, ConnectionError):  # The server reads no more of them.
            for _ in range(100):
                client.sendall(attacked.request(LOCAL) * 1_000)
        assert client.recv(1, socket.MSG_PEEK)  # The first answer has begun.
        for turn in range(5):
            assert ask(attacked, port).endswith(b"\r\n\r\nok")
            assert len(answered) <= 3 + turn


@pytest.mark.parametrize("line", [b"X: %s", b"%s", b"X: 1\r\n%s: 1"])
def test_the_head_of_a_request_is_bounded(attacked: Attacked, line: bytes) -> None:
    with serving(attacked) as port, connect(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\n" + line % (b"x" * HEAD_BYTES))
        client.shutdown(socket.SHUT_WR)
        assert status_of(rest(client)) in {400, 431}


def test_clients_that_hang_keep_nobody_out(attacked: Attacked) -> None:
    connections, all_ = 8, 400
    with ExitStack() as stack:
        port = stack.enter_context(serving(attacked, connections=connections))
        hanging = [stack.enter_context(connect(port)) for _ in range(all_)]
        request = attacked.request(LOCAL)
        for client in hanging[-4:]:
            client.sendall(request[:-2])
        assert ask(attacked, port).endswith(b"\r\n\r\nok")
        for client in hanging[: all_ - connections]:
            assert rest(client) == b""
        # Those that are left can still finish.
        hanging[-1].sendall(request[-2:])
        hanging[-1].shutdown(socket.SHUT_WR)
        assert rest(hanging[-1]).endswith(b"\r\n\r\nok")


def test_clients_that_vanish_leave_no_trace(
    attacked: Attacked, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    large = b"x" * (8 << 20)
    request = attacked.request(LOCAL)
    with serving(attacked, lambda: large) as port:
        for sent in (b"", request[:5], request[:-1], request, request + b"no request"):
            with connect(port) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
                client.sendall(sent)
        assert ask(attacked, port).endswith(large)
    assert capfd.readouterr().err == ""
    assert not caplog.records


def test_a_request_that_fails_says_so_in_the_log_only(
    attacked: Attacked, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> bytes:
        raise ValueError("secret")

    with serving(attacked, fail) as port:
        said = ask(attacked, port)
    assert status_of(said) == 500
    assert b"secret" not in said
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


@pytest.mark.parametrize(
    "request_", [None, b"GET /none HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"x\r\n\r\n"]
)
def test_no_answer_names_the_software(attacked: Attacked, request_: bytes | None) -> None:
    with serving(attacked) as port, connect(port) as client:
        client.sendall(request_ or attacked.request(LOCAL))
        client.shutdown(socket.SHUT_WR)
        said = rest(client).lower()
    assert said
    for name in (b"server:", b"python", b"uvicorn", b"starlette", b"h11"):
        assert name not in said
