"""The listener for queries: uvicorn in a thread, behind limits that no client gets past.

uvicorn waits for ever for a request, and for a client to read. It accepts any number of
connections, and httptools takes headers of any length. Here a request must be there, and what is
sent must be read, within `Limits.seconds`. There are at most `Limits.connections`. A further one
takes the place of the one that has waited longest for its client, if that is
`Limits.patience_seconds` or more. Otherwise the newest is told to come back later. No connection
is dropped while its request is answered.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar, cast

from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from worker.http.server import listening
from worker.queries.api import QueryApi
from worker.queries.desk import Desk
from worker.queries.group_pages import AskedGroups, no_groups
from worker.queries.responder import Respond, Said
from worker.queries.rights import Rights, checked_tls
from worker.settings.sections import ServeSection

__all__ = ["Limits", "answering", "serving"]

_UPGRADE = re.compile(rb"(?i)(\r?\n)upgrade:")
"""Some clients offer HTTP/2 so. httptools would take what follows for that, and not for a body."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients can take."""

    seconds: float = 5.0
    """How long a client may take to send a request, to read what it is sent, or to ask again."""
    connections: int = 256
    """How many are open at once at most."""
    patience_seconds: float = 0.5
    """How long a connection keeps its place without a whole request, if others want it."""
    head_bytes: int = 16 << 10
    """The size of a request's first line and headers at most."""
    refused: int = 64
    """How many further connections are open at most, until their clients have read the refusal."""


class _Places:
    """The connections that wait for their clients, and those that were refused."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.waiting: dict[_Connection, float] = {}
        """Since when; the one that has waited longest comes first."""
        self.refused: dict[_Connection, None] = {}

    def admit(self, newest: _Connection) -> None:
        """Find a place for a connection, or refuse it."""
        if len(newest.connections) <= self.limits.connections:
            return
        longest, since = next(iter(self.waiting.items()))
        patience = self.limits.patience_seconds
        if longest is not newest and newest.loop.time() - since >= patience:
            longest.drop()
            return
        newest.refuse(
            HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; try again", "Retry-After: 1\r\n"
        )
        if len(self.refused) > self.limits.refused:
            next(iter(self.refused)).drop()

    def forget(self, connection: _Connection) -> None:
        """Take a connection off, which is closed."""
        self.waiting.pop(connection, None)
        self.refused.pop(connection, None)


class _Sender:
    """A transport that sends in one go what is written in one step: a head and its body."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._written: list[bytes] = []
        self._ended = False

    def write(self, data: bytes) -> None:
        if self._ended:
            return
        if not self._written:
            self._loop.call_soon(self._flush)
        self._written.append(data)

    def _flush(self) -> None:
        if self._written:
            self._transport.write(b"".join(self._written))
            self._written.clear()

    def write_eof(self) -> None:
        self._flush()
        self._ended = True
        if self._transport.can_write_eof():
            try:
                self._transport.write_eof()
            except OSError:  # The client has gone already.
                self._transport.abort()
        else:  # With TLS there is no half-closed connection.
            self._transport.close()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- the rest of a transport
        return getattr(self._transport, name)


class _Connection(HttpToolsProtocol):
    """A connection. It waits for its client unless a whole request is to be answered."""

    places: ClassVar[_Places]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", _Sender(transport, self.loop)))
        self._limits = self.places.limits
        self._head_bytes: int | None = 0
        """Those of the head that is being received; None: it is whole."""
        self._whole = 0
        """The requests that are there, and aren't answered."""
        self._sending: asyncio.TimerHandle | None = None
        # So the connection hears of whatever its client leaves unread. With 0, one with TLS would
        # hear that all was sent only at its next write.
        transport.set_write_buffer_limits(high=1)
        self._wait()
        self.places.admit(self)

    def _wait(self) -> None:
        """Give the client its time for the next request."""
        self.places.forget(self)
        self.places.waiting[self] = self.loop.time()
        self._deadline = self.loop.call_later(self._limits.seconds, self.drop)

    def drop(self) -> None:
        """Close the connection at once."""
        self.connections.discard(self)
        self.places.forget(self)
        self.transport.abort()

    def refuse(self, status: HTTPStatus, reason: str, headers: str = "") -> None:
        """Answer without a look at the request, and leave the client a while to read that."""
        body = json.dumps({"error": reason}) + "\n"
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n{headers}Connection: close\r\n\r\n"
        )
        self.transport.write((head + body).encode())
        # A close with unread input would reset the connection, and lose the answer.
        self.transport.write_eof()
        self.connections.discard(self)
        self.places.forget(self)
        self.places.refused[self] = None
        self._deadline.cancel()
        self._deadline = self.loop.call_later(self._limits.seconds, self.drop)
        if self.cycle is not None:  # Nobody is told the answer to an earlier request.
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def send_400_response(self, msg: str) -> None:
        """See uvicorn."""
        del msg
        self.refuse(HTTPStatus.BAD_REQUEST, "not a request of HTTP/1.1")

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._deadline.cancel()
        if self._sending is not None:
            self._sending.cancel()
        self.places.forget(self)

    def data_received(self, data: bytes) -> None:
        if self in self.places.refused:
            return
        room = len(data)
        if self._head_bytes is not None:
            data = _UPGRADE.sub(rb"\1Ignored:", data)
            room = self._limits.head_bytes - self._head_bytes
            self._head_bytes += len(data)
        super().data_received(data[:room])
        if self in self.places.refused:
            return
        if (self._head_bytes or 0) >= self._limits.head_bytes:
            self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too long")
        elif len(data) > room:
            super().data_received(data[room:])

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._head_bytes = None

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._head_bytes = 0
        if not self.cycle.response_complete:
            self._whole += 1
            self._deadline.cancel()
            self.places.forget(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._whole = max(0, self._whole - 1)
        if not self._whole and not self.transport.is_closing():
            self._deadline.cancel()
            self._wait()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer first, even if the client will send no more; a stream ends with its client."""
        if self.cycle is None or self.cycle.response_started:
            self.transport.close()
            return False
        super().shutdown()
        return self.transport.can_write_eof()  # With TLS, whoever ends reads nothing more.

    def shutdown(self) -> None:
        """Answer what is to be answered, and then close: the server ends."""
        if self in self.places.waiting:
            self.drop()
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._sending = self.loop.call_later(self._limits.seconds, self.drop)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._sending is not None:
            self._sending.cancel()


class _Loop(asyncio.SelectorEventLoop):
    """A loop whose servers give a client a bounded time for TLS, which uvicorn can't."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def create_server(self, *given: Any, **named: Any) -> asyncio.Server:  # noqa: ANN401 -- as in asyncio
        if named.get("ssl") is not None:
            named["ssl_handshake_timeout"] = named["ssl_shutdown_timeout"] = self._seconds
        return await super().create_server(*given, **named)


@contextmanager
def answering(  # noqa: PLR0913 -- who answers what, where, and within which bounds
    at: ServeSection,
    respond: Respond,
    most_bytes: int,
    limits: Limits | None = None,
    *,
    groups: Callable[[AskedGroups], Said] = no_groups,
    desk: Callable[[], Desk | None] = lambda: None,
) -> Iterator[int]:
    """Answer queries with what ``respond`` returns, and yield the port; see `QueryApi`.

    Raises:
        ConfigurationError: the server can't listen on the address, or may not.
    """
    served = limits or Limits()
    rights, tls = Rights.of(at), checked_tls(at)
    listener = listening(at.host, at.port, "serve.host, serve.port", "--listen")
    port = listener.getsockname()[1]
    hosts = {at.host, *at.hosts}
    with (
        QueryApi(
            respond,
            most_bytes,
            hosts,
            served.seconds / 2,
            rights=rights,
            groups=groups,
            desk=desk,
        ) as api,
        serving(listener, api.app, served, api.end_streams, tls),
    ):
        yield port


@contextmanager
def serving(
    listener: socket.socket,
    app: ASGIApp,
    limits: Limits | None = None,
    end_streams: Callable[[], None] = lambda: None,
    tls: tuple[str, str] | None = None,
) -> Iterator[None]:
    """Serve an application in a separate thread, and close the listener at the end.

    What is being answered then is answered first, within `Limits.seconds`. Streams don't end by
    themselves, so ``end_streams`` must see to it. ``tls`` are files with a certificate and its key.
    """
    served = limits or Limits()

    class Connection(_Connection):
        places = _Places(served)

    config = Config(
        app,
        http=Connection,
        ws="none",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        log_level=logging.ERROR,
        access_log=False,
        server_header=False,
        ssl_certfile=tls and tls[0],
        ssl_keyfile=tls and tls[1],
        proxy_headers=False,
        timeout_keep_alive=math.ceil(served.seconds),
        timeout_graceful_shutdown=math.ceil(served.seconds),
    )
    server = Server(config)

    async def serve() -> None:
        await server.serve([listener])
        for left in [*server.server_state.connections, *Connection.places.refused]:
            left.transport.abort()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: _Loop(served.seconds)) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, name="queries", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end_streams()
        server.should_exit = True
        thread.join()
