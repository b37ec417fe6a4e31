"""Whatever listens on a port, in place of a ``neardup serve``."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from worker.cli.client import APPLICATION


class Stranger:
    """Whatever listens on a port: the names that it gives itself in turns, and what it was sent."""

    def __init__(self, names: Sequence[str | None], body: bytes, status: int) -> None:
        self.names = list(names)
        self.body = body
        self.bodies: dict[str, bytes] = {}
        """By path, in place of the other one."""
        self.status = status
        self.asked: list[tuple[str, str | None, bytes]] = []
        self.port = 0

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length", 0))
        sent = handler.rfile.read(length)
        token = handler.headers.get("Authorization")
        self.asked.append((f"{handler.command} {handler.path}", token, sent))
        name = self.names.pop(0) if len(self.names) > 1 else self.names[0]
        handler.send_response(self.status)
        if name is not None:
            handler.send_header(APPLICATION, name)
        body = self.bodies.get(handler.path.partition("?")[0], self.body)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)


@contextmanager
def listening(
    *names: str | None,
    body: bytes = b'{"id": "secret"}',
    status: int = 200,
    certificate: Mapping[str, Path] | None = None,
) -> Iterator[Stranger]:
    one = Stranger(names, body, status)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            one.answer(self)

        do_POST = do_GET  # noqa: N815 -- its name

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 -- its names
            del format, args

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing of a client that doesn't trust the certificate."""

    server = Server(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate["cert"], certificate["key"])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    one.port = server.server_port
    try:
        yield one
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
