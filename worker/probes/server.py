"""A server for probes and scrapes, which no client can exhaust.

One thread serves all connections, and each carries one request. A connection ends after
`Limits.seconds`, however little its client has sent or read. There are never more than
`Limits.connections`: for a further one, the one that has been open longest is dropped. So
clients that hang take neither threads nor file handles from the worker, and probes get through.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus

from worker.probes.probes import answer
from worker.settings.errors import ConfigurationError

_log = logging.getLogger(__name__)

_CHUNK = 4_096
_BACKLOG = 128
"""Connections that wait in the kernel; they take no file handle."""
_PAUSE_SECONDS = 1.0
"""After a connection could not be accepted, most often for want of file handles."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients can take."""

    seconds: float = 5.0
    """How long a connection lasts at most."""
    connections: int = 32
    """How many are open at once at most."""
    head_bytes: int = 16 << 10
    """The size of a request's first line and headers at most."""


def url(host: str, port: int, scheme: str = "http") -> str:
    """Return the address as a client writes it: ``http://[::1]:9464``."""
    return f"{scheme}://{_place(host, port)}"


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listening(host: str, port: int, settings: str, option: str) -> socket.socket:
    """Listen on IPv4 or IPv6, on ``::`` on both; a name that has both means its IPv4 address.

    Port 0 lets the system choose one. ``settings`` and ``option`` say where the address is set.

    Raises:
        ConfigurationError: nobody can listen on the address.
    """
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
        # Connections inherit it: what is written part by part isn't held back.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.settimeout(0)
        return listener
    raise ConfigurationError(
        f"{settings}: can't listen on {_place(host, port)}: {reason}"
        f" ({option} HOST:PORT names another; :0 takes any free port)"
    )


async def accepted(listener: socket.socket, what: str) -> AsyncIterator[socket.socket]:
    """Yield connections for ever. One that can't be accepted is logged as ``what``."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            connection, _ = await loop.sock_accept(listener)
        except OSError as error:
            if error.errno != errno.ECONNABORTED:
                _log.warning("%s: can't accept: %s", what, error.strerror)
                await asyncio.sleep(_PAUSE_SECONDS)
        else:
            yield connection
            await asyncio.sleep(0)  # What was accepted goes on, even if more come all the time.


@contextmanager
def serving(
    host: str, port: int, respond: Callable[[bytes], bytes], limits: Limits | None = None
) -> Iterator[int]:
    """Serve in a separate thread, and yield the port; 0 lets the system choose one.

    ``respond`` returns the answer to a request's first line and headers.

    Raises:
        ConfigurationError: the server can't listen on the address.
    """
    listener = listening(host, port, "worker.http_host, worker.http_port", "--http")
    with closing(listener):
        server = _Server(listener, respond, limits or Limits())
        thread = threading.Thread(target=server.run, name="http", daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.stop()
            thread.join()


class _Server:
    """Accepts connections until it is stopped."""

    def __init__(
        self, listener: socket.socket, respond: Callable[[bytes], bytes], limits: Limits
    ) -> None:
        self._listener = listener
        self._respond = respond
        self._limits = limits
        self._loop = asyncio.new_event_loop()
        self._ending = asyncio.Event()
        self._open: dict[asyncio.Task[None], socket.socket] = {}
        """The connections, the oldest first."""

    def run(self) -> None:
        """Serve until `stop`; close all connections."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    def stop(self) -> None:
        """Make `run` return; call it once, from another thread."""
        self._loop.call_soon_threadsafe(self._ending.set)

    async def _serve(self) -> None:
        accepting = asyncio.create_task(self._accept())
        await self._ending.wait()
        accepting.cancel()

    async def _accept(self) -> None:
        async for connection in accepted(self._listener, "metrics and health"):
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
                head = await self._head(connection)
                if head is not None:
                    await self._loop.sock_sendall(connection, self._answer(head))
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


def _is_whole(head: bytes) -> bool:
    return b"\r\n\r\n" in head or b"\n\n" in head
