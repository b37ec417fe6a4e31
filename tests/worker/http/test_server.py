"""Clients on real sockets: none can take from a worker what it needs."""

from __future__ import annotations

import http.client
import logging
import socket
from contextlib import ExitStack
from typing import NoReturn

import pytest

from worker.http.server import Limits, serving, url
from worker.settings import ConfigurationError

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
DEADLINE = 20.0
PATIENT = Limits(seconds=300)


def respond(_head: bytes) -> bytes:
    return ANSWER


def connect(port: int, host: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection((host, port), timeout=DEADLINE)


def get(port: int, host: str = "127.0.0.1") -> bytes:
    connection = http.client.HTTPConnection(host, port, timeout=DEADLINE)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read()
    finally:
        connection.close()


def rest(client: socket.socket) -> bytes:
    """Return what comes until the server closes the connection."""
    received = b""
    try:
        while chunk := client.recv(65_536):
            received += chunk
    except ConnectionResetError:
        pass
    return received


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


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::", "localhost", "0.0.0.0"])  # noqa: S104 -- what users set
def test_requests_are_answered_on_every_kind_of_address(host: str) -> None:
    if ":" in host and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with serving(host, 0, respond) as port:
        own = {"localhost": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- as above
        assert get(port, own.get(host, host)) == b"ok"
        if host == "::":
            assert get(port, "127.0.0.1") == b"ok"
    with pytest.raises(ConnectionRefusedError):
        connect(port, own.get(host, host))


@pytest.mark.parametrize("sent", [b"", b"GET /", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_a_client_that_sends_no_whole_request_is_dropped(sent: bytes) -> None:
    with serving("127.0.0.1", 0, respond, Limits(seconds=0.1)) as port, connect(port) as client:
        client.sendall(sent)
        assert rest(client) == b""


def test_a_client_that_never_stops_sending_is_dropped() -> None:
    with serving("127.0.0.1", 0, respond, Limits(seconds=1.0)) as port, connect(port) as client:
        client.sendall(REQUEST)
        assert rest(client) == ANSWER
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            send_forever(client)


def test_a_client_that_reads_nothing_is_dropped() -> None:
    large = b"x" * (32 << 20)
    with (
        serving("127.0.0.1", 0, lambda _head: large, Limits(seconds=0.2)) as port,
        connect(port) as client,
    ):
        client.sendall(REQUEST)
        with connect(port) as other:  # It ends after the first, for it came later.
            assert rest(other) == b""
        assert len(rest(client)) < len(large)


def test_the_head_of_a_request_is_bounded() -> None:
    with serving("127.0.0.1", 0, respond, PATIENT) as port, connect(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * PATIENT.head_bytes)
        client.shutdown(socket.SHUT_WR)
        assert rest(client).startswith(b"HTTP/1.1 431 ")


def test_clients_that_hang_keep_no_probe_out() -> None:
    limits = Limits(seconds=300, connections=8)
    with ExitStack() as stack:
        port = stack.enter_context(serving("127.0.0.1", 0, respond, limits))
        hanging = [stack.enter_context(connect(port)) for _ in range(253)]
        for client in hanging[-4:]:
            client.sendall(REQUEST[:-2])
        assert get(port) == b"ok"
        for client in hanging[: 253 - limits.connections]:
            assert rest(client) == b""
        # Those that are left can still finish.
        hanging[-1].sendall(b"\r\n")
        hanging[-1].shutdown(socket.SHUT_WR)
        assert rest(hanging[-1]) == ANSWER


def test_clients_that_vanish_leave_no_trace(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # on, 0 s: a close resets the connection
    large = b"x" * (8 << 20)
    with serving("127.0.0.1", 0, lambda _head: large) as port:
        for sent in (b"", REQUEST[:5], REQUEST):
            with connect(port) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                client.sendall(sent)
        assert get_large(port) == large
    assert capfd.readouterr().err == ""
    assert not caplog.records


def get_large(port: int) -> bytes:
    with connect(port) as client:
        client.sendall(REQUEST)
        client.shutdown(socket.SHUT_WR)
        return rest(client)


def test_a_request_that_fails_says_so_in_the_log_only(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_head: bytes) -> bytes:
        raise ValueError("secret")

    with serving("127.0.0.1", 0, fail) as port, connect(port) as client:
        client.sendall(REQUEST)
        client.shutdown(socket.SHUT_WR)
        answer = rest(client)
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"secret" not in answer
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_an_address_in_use_is_a_wrong_setting() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        serve = serving("127.0.0.1", port, respond)
        with pytest.raises(ConfigurationError, match=rf"on 127\.0\.0\.1:{port}: Address already"):
            serve.__enter__()


@pytest.mark.parametrize("host", ["::1%no-such-link", "a..b", "192.0.2.1"])
def test_an_address_that_is_none_of_ours_is_a_wrong_setting(host: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"worker\.http_host, .*: can't listen on .* \(--http "
    ):
        serving(host, 0, respond).__enter__()


def test_an_address_is_shown_as_clients_write_it() -> None:
    assert url("127.0.0.1", 1) == "http://127.0.0.1:1"
    assert url("::", 1) == "http://[::]:1"
