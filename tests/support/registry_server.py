"""A schema registry in a thread of the test: what its API answers, and ways to fail.

It issues tokens, too: to the client ``client`` with the secret ``secret``.
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit


class RegistryServer:
    """Answers with the schemas that are put into it.

    ``failure`` replaces all answers, and ``writes`` writes them itself; ``found`` is what answers
    a path that nothing was put at.
    """

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self.failure: tuple[int, bytes] | None = None
        self.writes: Callable[[BaseHTTPRequestHandler], None] | None = None
        self.found: Callable[[str], dict[str, Any] | None] = lambda _: None
        self.asked: list[str] = []
        self.authorizations: list[str | None] = []
        self.headers: list[dict[str, str]] = []
        self.forms: list[str] = []
        self.token = ""
        self.url = ""

    def put(
        self, ident: int | str, kind: str, schema: str, *references: tuple[str, str, str]
    ) -> None:
        """Add a schema; ``references`` are names, subjects and schemas that it refers to."""
        where = "ids" if isinstance(ident, int) else "guids"
        listed = [
            {"name": name, "subject": subject, "version": 1} for name, subject, _ in references
        ]
        self.answers[f"/schemas/{where}/{ident}"] = {
            "schema": schema,
            "schemaType": kind,
            "references": listed,
        }
        for _, subject, text in references:
            self.answers[f"/subjects/{subject}/versions/1"] = {
                "schema": text,
                "schemaType": kind,
                "subject": subject,
                "version": 1,
                "id": 900,
            }

    def answer(self, target: str) -> tuple[int, bytes]:
        """Return the status and the body for a path."""
        self.asked.append(target)
        if self.failure is not None:
            return self.failure
        path = urlsplit(target).path
        found = self.answers.get(path) or self.found(path)
        if found is None:
            return 404, b'{"error_code": 40403, "message": "Schema not found"}'
        return 200, json.dumps(found).encode()


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients go away as they like."""


@contextmanager
def registry_server(tls: SSLContext | None = None) -> Iterator[RegistryServer]:
    """Yield a registry on a free port of 127.0.0.1."""
    registry = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            registry.authorizations.append(self.headers["Authorization"])
            registry.headers.append(dict(self.headers))
            if registry.writes is not None:
                self.close_connection = True
                with suppress(OSError):  # The client has had enough.
                    registry.writes(self)
                return
            status, body = registry.answer(self.path)
            if registry.token and self.headers["Authorization"] != f"Bearer {registry.token}":
                status, body = 401, b"{}"
            self._answer(status, body)

        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            registry.forms.append(form)
            if self.headers["Authorization"] != f"Basic {b64encode(b'client:secret').decode()}":
                self._answer(401, b'{"error": "invalid_client"}')
                return
            registry.token = f"token-{len(registry.forms)}"
            self._answer(
                200, json.dumps({"access_token": registry.token, "expires_in": 60}).encode()
            )

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing on standard error."""

    server = _Quiet(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    registry.url = f"http{'' if tls is None else 's'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
