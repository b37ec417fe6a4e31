"""Requests and answers: ``/metrics``, ``/healthz`` and ``/readyz``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from email.utils import formatdate
from http import HTTPStatus

from worker.http.health import Health
from worker.http.requests import REQUEST
from worker.metrics import Metrics
from worker.metrics.exposition import CONTENT_TYPE, exposition

__all__ = ["Pages", "answer", "failure"]

_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"
_READS = frozenset({b"GET", b"HEAD"})


def answer(
    status: HTTPStatus,
    kind: str = _TEXT,
    body: bytes = b"",
    *,
    bare: bool = False,
    allow: str = "GET, HEAD",
) -> bytes:
    """Return a whole answer; with ``bare``, without the body that its headers describe.

    An empty body becomes the status's own phrase. ``allow`` are the methods that a refusal of
    another names. The connection ends with the answer.
    """
    body = body or f"{status.phrase}\n".encode()
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Date: {formatdate(usegmt=True)}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append(f"Allow: {allow}")
    head = "\r\n".join([*lines, "", ""]).encode()
    return head if bare else head + body


def failure(status: HTTPStatus, reason: str, *, allow: str = "GET, HEAD") -> bytes:
    """Return a whole answer that says in JSON why a request failed."""
    return answer(status, _JSON, json.dumps({"error": reason}).encode() + b"\n", allow=allow)


class Pages:
    """Answers requests with what a worker exports."""

    def __init__(self, metrics: Metrics, health: Callable[[], Health]) -> None:
        """Take the metrics, and a function that returns the worker's state."""
        self._metrics = metrics
        self._health = health

    def answer(self, head: bytes) -> bytes:
        """Return the answer to a request; ``head`` is its first line and its headers."""
        request = REQUEST.match(head)
        if request is None:
            return answer(HTTPStatus.BAD_REQUEST)
        method, target = request.groups()
        if method not in _READS:
            return answer(HTTPStatus.METHOD_NOT_ALLOWED)
        status, kind, body = self._page(target.partition(b"?")[0])
        return answer(status, kind, body, bare=method == b"HEAD")

    def _page(self, path: bytes) -> tuple[HTTPStatus, str, bytes]:
        match path:
            case b"/metrics":
                return HTTPStatus.OK, CONTENT_TYPE, exposition(self._metrics)
            case b"/healthz":
                return self._state(lambda health: health.alive)
            case b"/readyz":
                return self._state(lambda health: health.ready)
            case _:
                return HTTPStatus.NOT_FOUND, _TEXT, b"/metrics, /healthz, /readyz\n"

    def _state(self, judge: Callable[[Health], bool]) -> tuple[HTTPStatus, str, bytes]:
        now = self._health()
        good = judge(now)
        body = json.dumps({"ok": good, **asdict(now)}).encode() + b"\n"
        status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
        return status, _JSON, body
