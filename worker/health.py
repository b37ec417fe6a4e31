"""``/metrics``, ``/healthz`` and ``/readyz`` over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from worker.settings import ConfigurationError

__all__ = ["Health", "serving"]


@dataclass(frozen=True, slots=True)
class Health:
    """How a worker is doing; the lists name stages."""

    failed: str | None = None
    stopping: bool = False
    waiting: list[str] = field(default_factory=list)
    restoring: list[str] = field(default_factory=list)
    catching_up: list[str] = field(default_factory=list)
    stalled: list[str] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        """Tell whether a restart would not help; Kafka being away is no reason for one."""
        return self.failed is None and not self.stalled

    @property
    def ready(self) -> bool:
        """Tell whether every stage has its seat and no backlog, and every shard answers."""
        behind = self.waiting or self.restoring or self.catching_up
        return self.alive and not (self.stopping or behind)


@contextmanager
def serving(
    host: str, port: int, registry: CollectorRegistry, health: Callable[[], Health]
) -> Iterator[int]:
    """Serve in a thread of its own; gives the port, which 0 leaves to the system.

    Raises:
        ConfigurationError: the address can't be listened on.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest(registry))
            elif path in {"/healthz", "/readyz"}:
                now = health()
                good = now.alive if path == "/healthz" else now.ready
                body = json.dumps({"ok": good, **asdict(now)}).encode() + b"\n"
                self._answer(200 if good else 503, "application/json", body)
            else:
                self._answer(404, "text/plain", b"/metrics, /healthz, /readyz\n")

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- http.server's
            """Say nothing: a probe every few seconds is no news."""

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise ConfigurationError(
            f"worker.http_port: can't listen on {host}:{port}: {error.strerror}"
        ) from None
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.2,), name="http", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
