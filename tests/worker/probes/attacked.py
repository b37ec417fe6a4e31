"""The servers that clients attack: that for probes, and that for queries."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus

from worker.probes import server as probes
from worker.probes.probes import answer
from worker.probes.server import listening
from worker.serve import server as queries
from worker.serve.api import QueryApi
from worker.serve.queries import Respond, Said
from worker.serve.rights import Rights
from worker.settings.sections import ServeSection

DEADLINE = 20.0
MOST_BYTES = 1 << 20
_HEAD = re.compile(rb"(?is)\r\ncontent-length: (\d+).*?\r\n\r\n")
BODY = b'{"text": "some"}'


def post(body: bytes, host: str = "127.0.0.1", *, length: int | None = None) -> bytes:
    """Return a query as it is sent."""
    head = (
        f"POST /v1/query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body) if length is None else length}\r\n\r\n"
    )
    return head.encode() + body


def _probes(
    respond: Callable[[], bytes], host: str, seconds: float, connections: int
) -> AbstractContextManager[int]:
    limits = probes.Limits(seconds=seconds, connections=connections)
    return probes.serving(host, 0, lambda _head: answer(HTTPStatus.OK, body=respond()), limits)


def _queries(
    respond: Callable[[], bytes], host: str, seconds: float, connections: int
) -> AbstractContextManager[int]:
    def each(bodies: Sequence[bytes]) -> list[Said]:
        return [respond() for _ in bodies]

    limits = queries.Limits(seconds=seconds, connections=connections, patience_seconds=0)
    return _answering(host, each, limits)


@contextmanager
def _answering(host: str, respond: Respond, limits: queries.Limits) -> Iterator[int]:
    """Answer on any address without a token, which `queries.answering` refuses."""
    rights, at = Rights(None, None, secure=False), ServeSection(host=host)
    with closing(listening(host, 0, "", "")) as listener:
        port: int = listener.getsockname()[1]
        with (
            QueryApi(respond, MOST_BYTES, at, limits.seconds / 2, rights=rights) as api,
            queries.serving(listener, api.app, limits),
        ):
            yield port


@dataclass(frozen=True)
class Attacked:
    """One of the servers.

    ``serving`` takes what is answered, the address, and the limits. ``request`` is a whole one, and
    ``begun`` are beginnings.
    """

    serving: Callable[[Callable[[], bytes], str, float, int], AbstractContextManager[int]]
    request: Callable[[str], bytes]
    begun: Sequence[bytes]


def _get(host: str) -> bytes:
    return f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


SERVERS = {
    "probes": Attacked(_probes, _get, [b"", b"GET /", b"GET / HTTP/1.1\r\nHost: x\r\n"]),
    "queries": Attacked(
        _queries,
        lambda host: post(BODY, host),
        [b"", b"POST /v1", b"POST /v1/query HTTP/1.1\r\nHost: x\r\n", post(b"{", length=9)],
    ),
}


def connect(port: int, host: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection((host, port), timeout=DEADLINE)


def rest(client: socket.socket) -> bytes:
    """Return what comes until the server closes the connection."""
    received = b""
    try:
        while chunk := client.recv(65_536):
            received += chunk
    except ConnectionResetError:
        pass
    return received


def status_of(received: bytes) -> int:
    return int(received.split(b" ", 2)[1])


def whole(client: socket.socket) -> bytes:
    """Return an answer that has a length; the connection may go on."""
    received = b""
    while (head := _HEAD.search(received)) is None or len(received) < head.end() + int(head[1]):
        more = client.recv(65_536)
        assert more, received
        received += more
    return received
