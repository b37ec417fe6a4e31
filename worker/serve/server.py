"""The listener for queries: uvicorn in a thread, behind limits that no client gets past.

uvicorn answers the requests of a connection one by one and bounds their heads. But it waits for
ever for a request, for a handshake of TLS, and for a client to read, and whoever connects first
keeps the others out. Here a request must be there, and what is sent must be read, within
`Limits.seconds`. There are at most `Limits.connections`. A further one takes the place of the one
that has waited longest for its client, if that is `Limits.patience_seconds` or more. Otherwise the
newest is told to come back later. No connection is dropped while its request is answered.

So a connection holds at most what one read brings (256 KiB), what is left of one answer, and a
body, of which the API bounds the sum.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import ClassVar, Literal

from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from worker.page import HEADERS
from worker.probes.server import accepted, listening
from worker.serve.api import QueryApi
from worker.serve.desk import Desk, no_desk
from worker.serve.groups import AskGroups, no_groups
from worker.serve.queries import Respond
from worker.serve.rights import Rights, checked_tls
from worker.settings.sections import ServeSection

APPLICATION = "neardup-application"
"""The header of each answer with the application's name."""
_SEND_BYTES = 128 << 10
_ENDED_SECONDS = 1.0
"""How long a client is answered that will send no more: most often it has gone."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients can take."""

    seconds: float = 5.0
    """How long a client may take for TLS, to send a request, to read an answer, or to ask again."""
    connections: int = 256
    """How many are open at once at most, and how many are at their handshake."""
    patience_seconds: float = 0.5
    """How long a connection that waits for its client keeps its place, if others want it."""
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
        newest.refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; try again")
        if len(self.refused) > self.limits.refused:
            next(iter(self.refused)).drop()

    def forget(self, connection: _Connection) -> None:
        """Take a connection off."""
        self.waiting.pop(connection, None)
        self.refused.pop(connection, None)


class _Connection(H11Protocol):
    """A connection. It waits for its client to send a whole request, or to read an answer."""

    places: ClassVar[_Places]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._awaits: Literal["request", "reading"] | None = None
        self._ended = False
        self._later = b""
        """What came while a request was answered."""
        self._deadline = self.loop.call_later(self.places.limits.seconds, self.drop)
        # So the connection hears of whatever its client leaves unread. With 0, one with TLS would
        # hear that all was sent only at its next write.
        transport.set_write_buffer_limits(high=1)
        self._look()
        self.places.admit(self)

    def _look(self) -> None:
        """Give the client its time if something else is awaited of it than before."""
        if self in self.places.refused or self.transport.is_closing():
            return
        before = self._awaits
        if self.flow.write_paused:
            self._awaits = "reading"
        else:
            self._awaits = None if self._is_answered else "request"
        if self._awaits == "request" and self._ended:
            self.loop.call_soon(self.transport.close)  # Not within a callback of the transport.
        elif self._awaits != before:
            self._deadline.cancel()
            self.places.forget(self)
            if self._awaits is not None:
                self.places.waiting[self] = self.loop.time()
                self._deadline = self.loop.call_later(self.places.limits.seconds, self.drop)

    def drop(self) -> None:
        """Close the connection at once."""
        self.connections.discard(self)
        self.places.forget(self)
        self.transport.abort()

    def refuse(self, status: HTTPStatus, reason: str) -> None:
        """Answer without a look at the request, and leave the client a while to read that."""
        body = json.dumps({"error": reason}) + "\n"
        own = b"".join(b"%s: %s\r\n" % pair for pair in self.server_state.default_headers)
        again = "Retry-After: 1\r\n" if status is HTTPStatus.SERVICE_UNAVAILABLE else ""
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n{again}Connection: close\r\n"
        )
        self.transport.write(head.encode() + own + f"\r\n{body}".encode())
        self.connections.discard(self)
        self.places.forget(self)
        self.places.refused[self] = None
        self._deadline.cancel()
        self._deadline = self.loop.call_later(self.places.limits.seconds, self.drop)
        if self.cycle is not None:  # Nobody is told the answer to an earlier request.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if not self.transport.can_write_eof():  # With TLS there is no half-closed connection.
            self.transport.close()
            return
        try:  # A close with unread input would reset the connection, and lose the answer.
            self.transport.write_eof()
        except OSError:  # The client has gone already.
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """See uvicorn."""
        del msg
        most = self.places.limits.head_bytes
        reason = f"not a request of HTTP/1.1 with at most {most} bytes of headers"
        self.refuse(HTTPStatus.BAD_REQUEST, reason)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._deadline.cancel()
        self.places.forget(self)

    @property
    def _is_answered(self) -> bool:
        """Return whether a whole request is there whose answer isn't complete."""
        cycle = self.cycle
        return cycle is not None and not cycle.more_body and not cycle.response_complete

    def data_received(self, data: bytes) -> None:
        if self in self.places.refused:
            return
        if self._is_answered:  # uvicorn would go on reading, and keep all of it.
            self._later += data
            self.transport.pause_reading()
        else:
            super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._later and not self._is_answered and not self.transport.is_closing():
            later, self._later = self._later, b""
            self.transport.resume_reading()
            self.data_received(later)
        self._look()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer what was asked if that takes no time; a stream ends with its client."""
        self._ended = True
        self._look()
        streams = self._is_answered and self.cycle.response_started
        self.loop.call_later(0 if streams else _ENDED_SECONDS, self.transport.close)
        return self.transport.can_write_eof()  # With TLS, whoever ends reads nothing more.

    def shutdown(self) -> None:
        """Answer what is to be answered, and then close: the server ends."""
        if self._awaits is not None:
            self.drop()
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._look()


@contextmanager
def answering(  # noqa: PLR0913 -- who answers what, where, and within which bounds
    at: ServeSection,
    respond: Respond,
    most_bytes: int,
    limits: Limits | None = None,
    *,
    app: str = "neardup",
    groups: AskGroups = no_groups,
    desk: Callable[[], Desk] = no_desk,
) -> Iterator[int]:
    """Answer queries with what ``respond`` returns, and yield the port; see `QueryApi`.

    ``app`` is the application's name, which each answer has as a header.

    Raises:
        ConfigurationError: the server can't listen on the address, or may not.
    """
    served = limits or Limits()
    rights, tls = Rights.of(at, app), checked_tls(at)
    listener = listening(at.host, at.port, "serve.host, serve.port", "--listen")
    port = listener.getsockname()[1]
    named = {**HEADERS, APPLICATION: app}
    with (
        QueryApi(
            respond, most_bytes, at, served.seconds / 2, rights=rights, groups=groups, desk=desk
        ) as api,
        serving(listener, api.app, served, api.end_streams, tls, headers=named),
    ):
        yield port


@contextmanager
def serving(  # noqa: PLR0913 -- who is served what, and within which bounds
    listener: socket.socket,
    app: ASGIApp,
    limits: Limits | None = None,
    end_streams: Callable[[], None] = lambda: None,
    tls: tuple[str, str] | None = None,
    *,
    headers: Mapping[str, str] = HEADERS,
) -> Iterator[None]:
    """Serve an application in a separate thread, and close the listener at the end.

    What is being answered then is answered first, within `Limits.seconds`. Streams don't end by
    themselves, so ``end_streams`` must see to it. ``tls`` are files with a certificate and its key.
    ``headers`` are those of each answer.
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
        headers=list(headers.items()),
        ssl_certfile=tls and tls[0],
        ssl_keyfile=tls and tls[1],
        proxy_headers=False,
        timeout_keep_alive=math.ceil(served.seconds) + 1,
        timeout_graceful_shutdown=math.ceil(served.seconds),
        h11_max_incomplete_event_size=served.head_bytes,
    )
    config.load()
    server = Server(config)

    async def serve() -> None:
        loop = asyncio.get_running_loop()

        def connection() -> Connection:
            return Connection(config, server.server_state, {}, loop)

        accepting = asyncio.create_task(_accept(listener, connection, config.ssl, served))
        await server.serve([])  # It has no socket of its own.
        accepting.cancel()
        for left in [*server.server_state.connections, *Connection.places.refused]:
            left.transport.abort()

    def run() -> None:
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, name="queries", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end_streams()
        server.should_exit = True
        thread.join()
        listener.close()


async def _accept(
    listener: socket.socket,
    protocol: Callable[[], _Connection],
    tls: ssl.SSLContext | None,
    limits: Limits,
) -> None:
    """Accept connections. With TLS, those at their handshake are bounded as well."""
    loop = asyncio.get_running_loop()
    within = None if tls is None else limits.seconds
    begun: dict[asyncio.Task[object], None] = {}

    def over(task: asyncio.Task[object]) -> None:
        begun.pop(task, None)
        if not task.cancelled():
            task.exception()  # The client has gone, or knows no TLS.

    async for connection in accepted(listener, "queries"):
        if tls is not None and len(begun) >= limits.connections:
            oldest = next(iter(begun))
            del begun[oldest]
            oldest.cancel()
        # Otherwise the system would take megabytes of answers that nobody reads.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        task = asyncio.create_task(
            loop.connect_accepted_socket(
                protocol,
                connection,
                ssl=tls,
                ssl_handshake_timeout=within,
                ssl_shutdown_timeout=within,
            )
        )
        begun[task] = None
        task.add_done_callback(over)
