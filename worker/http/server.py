"""A server for probes, scrapes and queries, which no client can exhaust.

One thread serves all connections, and each carries one request. A connection ends after
`Limits.seconds`, however little its client has sent or read. There are never more than
`Limits.connections`: for a further one, the one that has been open longest is dropped. So
clients that hang take neither threads nor file handles from the worker, and probes get through.
What is posted is answered in threads of their own, so that a long answer holds up no probe.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus

from worker.http.pages import answer, failure
from worker.http.requests import Head, body_of, head_of
from worker.http.responder import Respond, Responder
from worker.settings import ConfigurationError

__all__ = ["Limits", "Posts", "serving", "url"]

_log = logging.getLogger(__name__)

_CHUNK = 4_096
_BODY_CHUNK = 64 << 10
_BACKLOG = 128
"""Connections that wait in the kernel; they take no file handle."""
_PAUSE_SECONDS = 1.0
"""After a connection could not be accepted, most often for want of file handles."""
_TOGETHER = 16
_LONG_BYTES = 64 << 10
"""Longer bodies are answered one by one, by a thread of their own: shorter ones don't wait for
them."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients can take."""

    seconds: float = 5.0
    """How long a connection lasts at most."""
    connections: int = 32
    """How many are open at once at most."""
    head_bytes: int = 16 << 10
    """The size of a request's first line and headers at most."""


@dataclass(frozen=True, slots=True)
class Posts:
    """What clients may post, to one path."""

    path: bytes
    respond: Respond
    """Two threads call it; see `Respond`."""
    most_bytes: int
    """The size of a body at most."""


def url(host: str, port: int) -> str:
    """Return the address as a client writes it: ``http://[::1]:9464``."""
    return f"http://{_place(host, port)}"


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextmanager
def serving(
    host: str,
    port: int,
    respond: Callable[[bytes], bytes],
    limits: Limits | None = None,
    posts: Posts | None = None,
) -> Iterator[int]:
    """Serve in a separate thread, and yield the port; 0 lets the system choose one.

    ``respond`` returns the answer to a request's first line and headers. At the end, what was
    posted before is answered first.

    Raises:
        ConfigurationError: the server can't listen on the address.
    """
    with closing(_listen(host, port)) as listener:
        server = _Server(listener, respond, limits or Limits(), posts)
        thread = threading.Thread(target=server.run, name="http", daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.stop()
            thread.join()


def _listen(host: str, port: int) -> socket.socket:
    """Listen on IPv4 or IPv6, on ``::`` on both; a name that has both means its IPv4 address."""
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = min(found, key=lambda place: place[0] != socket.AF_INET)
        listener = socket.create_server(
            address,
            family=family,
            backlog=_BACKLOG,
            dualstack_ipv6=address[0] == "::" and socket.has_dualstack_ipv6(),
        )
    except socket.gaierror as error:
        reason = error.strerror
    except OSError as error:
        reason = os.strerror(error.errno or errno.EADDRNOTAVAIL)
    except UnicodeError:
        reason = "not a host name"
    else:
        listener.settimeout(0)
        return listener
    raise ConfigurationError(
        f"worker.http_host, worker.http_port: can't listen on {_place(host, port)}: {reason}"
        " (--http HOST:PORT names another; :0 takes any free port)"
    )


class _Server:
    """Accepts connections until it is stopped."""

    def __init__(
        self,
        listener: socket.socket,
        respond: Callable[[bytes], bytes],
        limits: Limits,
        posts: Posts | None,
    ) -> None:
        self._listener = listener
        self._respond = respond
        self._limits = limits
        self._posts = posts
        self._responders = (
            [Responder(posts.respond, most) for most in (_TOGETHER, 1)] if posts else []
        )
        self._posting: set[asyncio.Task[None]] = set()
        """The connections whose body is being answered."""
        self._loop = asyncio.new_event_loop()
        self._ending = asyncio.Event()
        self._open: dict[asyncio.Task[None], socket.socket] = {}
        """The connections, the oldest first."""

    def run(self) -> None:
        """Serve until `stop`; close all connections."""
        with ExitStack() as stack:
            for responder in self._responders:
                stack.callback(responder.end)
            runner = stack.enter_context(asyncio.Runner(loop_factory=lambda: self._loop))
            runner.run(self._serve())

    def stop(self) -> None:
        """Make `run` return; call it once, from another thread."""
        self._loop.call_soon_threadsafe(self._ending.set)

    async def _serve(self) -> None:
        accepting = asyncio.create_task(self._accept())
        await self._ending.wait()
        accepting.cancel()
        if self._posting:
            await asyncio.wait(self._posting, timeout=self._limits.seconds)

    async def _accept(self) -> None:
        while True:
            try:
                connection, _ = await self._loop.sock_accept(self._listener)
            except OSError as error:
                if error.errno != errno.ECONNABORTED:
                    _log.warning("metrics and health: can't accept: %s", error.strerror)
                    await asyncio.sleep(_PAUSE_SECONDS)
                continue
            task = asyncio.create_task(self._handle(connection))
            self._open[task] = connection
            task.add_done_callback(self._close)
            if len(self._open) > self._limits.connections:
                oldest = next(iter(self._open))
                oldest.cancel()
                await asyncio.wait([oldest])

    def _close(self, task: asyncio.Task[None]) -> None:
        """Close a task's connection; a task that was cancelled early has never run."""
        self._open.pop(task).close()

    async def _handle(self, connection: socket.socket) -> None:
        """Answer one request; drop a client that is gone or too slow."""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(self._limits.seconds):
                found = await self._answered(connection)
                if found is not None:
                    await self._loop.sock_sendall(connection, found)
                    # A close with unread input would reset the connection, and lose the answer.
                    connection.shutdown(socket.SHUT_WR)
                    while await self._loop.sock_recv(connection, _CHUNK):
                        pass

    async def _head(self, connection: socket.socket) -> bytes | None:
        """Return a request's first line and headers, as far as they fit; None if it ends early."""
        head = b""
        while not _is_whole(head) and len(head) <= self._limits.head_bytes:
            received = await self._loop.sock_recv(connection, _CHUNK)
            if not received:
                return None
            head += received
        return head

    def _answer(self, head: bytes) -> bytes:
        if not _is_whole(head):
            return answer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        try:
            return self._respond(head)
        except Exception:  # noqa: BLE001 -- the next request may work; the log has this error
            _log.exception("metrics and health: a request failed")
            return answer(HTTPStatus.INTERNAL_SERVER_ERROR)

    async def _answered(self, connection: socket.socket) -> bytes | None:
        """Return the answer to the next request; None if it ends early."""
        received = await self._head(connection)
        if received is None:
            return None
        posts, head = self._posts, head_of(received) if _is_whole(received) else None
        if posts is None or head is None or (head.method, head.path) != (b"POST", posts.path):
            return self._answer(received)
        return await self._posted(connection, posts, head, body_of(received))

    async def _posted(
        self, connection: socket.socket, posts: Posts, head: Head, received: bytes
    ) -> bytes | None:
        """Return the answer to what is posted; ``received`` is the beginning of the body."""
        if head.length is None:
            return failure(HTTPStatus.LENGTH_REQUIRED, "the header Content-Length is missing")
        if head.length > posts.most_bytes:
            return failure(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the body has {head.length} bytes, and may have {posts.most_bytes}",
            )
        body = bytearray(received)
        if head.expects and len(body) < head.length:
            await self._loop.sock_sendall(connection, b"HTTP/1.1 100 Continue\r\n\r\n")
        while len(body) < head.length:
            more = await self._loop.sock_recv(connection, _BODY_CHUNK)
            if not more:
                return None
            body += more
        return await self._responded(bytes(body[: head.length]))

    async def _responded(self, body: bytes) -> bytes:
        """Return what a thread answers to a body."""
        seconds = self._limits.seconds / 2
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 -- every connection has one
        self._posting.add(task)
        task.add_done_callback(self._posting.discard)
        try:
            async with asyncio.timeout(seconds):
                return await self._responders[len(body) > _LONG_BYTES].answer(body)
        except TimeoutError:
            reason = f"there was no answer within {seconds:g} s"
            return failure(HTTPStatus.SERVICE_UNAVAILABLE, reason)
        except Exception:  # noqa: BLE001 -- the next request may work; the log has this error
            _log.exception("a query failed")
            return failure(HTTPStatus.INTERNAL_SERVER_ERROR, "it failed; the log says why")


def _is_whole(head: bytes) -> bool:
    return b"\r\n\r\n" in head or b"\n\n" in head
