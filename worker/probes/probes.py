"""What a worker answers to probes and scrapes: ``/metrics``, ``/healthz`` and ``/readyz``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from email.utils import formatdate
from http import HTTPStatus

from worker.metrics import table
from worker.metrics.exposition import CONTENT_TYPE, exposition
from worker.metrics.metrics import Metrics

_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"
_REQUEST = re.compile(rb"([A-Z]{1,16}) (/[!-~]*) HTTP/1\.[01]\r?\n")
"""A first line: the method and the target."""
_READS = frozenset({b"GET", b"HEAD"})


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a worker; the lists name stages.

    Attributes:
        failed: the stage that failed first. The log says why.
        stopping: whether the worker is on its way out.
        unanswered: whether no broker has answered for as long as a session lasts.
        waiting: stages that wait for their seat: they have not joined yet, or have lost it.
        restoring: stages with a shard that doesn't answer yet.
        catching_up: stages that still process the backlog of their last assignment.
        stalled: stages that don't poll.
    """

    failed: str | None = None
    stopping: bool = False
    unanswered: bool = False
    waiting: list[str] = field(default_factory=list)
    restoring: list[str] = field(default_factory=list)
    catching_up: list[str] = field(default_factory=list)
    stalled: list[str] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        """Return whether the worker needs no restart; an outage of Kafka is no reason for one."""
        return self.failed is None and not self.stalled

    @property
    def ready(self) -> bool:
        """Return whether Kafka answers, and every stage has its seat, its shards and no backlog."""
        behind = self.waiting or self.restoring or self.catching_up
        return self.alive and not (self.stopping or self.unanswered or behind)


def answer(
    status: HTTPStatus, kind: str = _TEXT, body: bytes = b"", *, bare: bool = False
) -> bytes:
    """Return a whole answer; with ``bare``, without the body that its headers describe.

    An empty body becomes the status's own phrase. The connection ends with the answer.
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
        lines.append("Allow: GET, HEAD")
    head = "\r\n".join([*lines, "", ""]).encode()
    return head if bare else head + body


class Pages:
    """Answers requests with what a worker exports."""

    def __init__(self, metrics: Metrics, health: Callable[[], Health]) -> None:
        """Take the metrics, and a function that returns the worker's state."""
        self._metrics = metrics
        self._health = health

    def answer(self, head: bytes) -> bytes:
        """Return the answer to a request; ``head`` is its first line and its headers."""
        request = _REQUEST.match(head)
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
                self._metrics.set(table.READY, self._health().ready)
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
