"""A schema registry in a thread of the test: what its API answers, and ways to fail."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

__all__ = ["RegistryServer", "registry_server"]


class RegistryServer:
    """Answers with the schemas that are put into it; ``failure`` replaces all answers."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self.failure: tuple[int, bytes] | None = None
        self.asked: list[str] = []
        self.authorizations: list[str | None] = []
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
        found = self.answers.get(urlsplit(target).path)
        if found is None:
            return 404, b'{"error_code": 40403, "message": "Schema not found"}'
        return 200, json.dumps(found).encode()


@contextmanager
def registry_server() -> Iterator[RegistryServer]:
    """Yield a registry on a free port of 127.0.0.1."""
    registry = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            registry.authorizations.append(self.headers["Authorization"])
            status, body = registry.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
