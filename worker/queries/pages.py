"""What ``neardup serve`` answers over HTTP: queries, metrics and its health."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from itertools import islice
from time import monotonic
from typing import NamedTuple

from worker.formats.base import Unreadable
from worker.http.health import Health
from worker.http.pages import Pages, answer, failure
from worker.http.requests import head_of
from worker.index.errors import StoreDamaged
from worker.metrics import Metrics, table
from worker.queries.answers import Answer, Reply, encoded
from worker.queries.asking import Asker
from worker.queries.following import Following, Reached, Warming
from worker.queries.questions import BadRequest, Question, Questions

__all__ = ["PATH", "QueryPages"]

_log = logging.getLogger(__name__)

PATH = b"/v1/query"
_JSON = "application/json"


class _Refusal(NamedTuple):
    """Why a query has no answer."""

    status: HTTPStatus
    reason: str

    def said(self) -> tuple[HTTPStatus, bytes]:
        """Return the status, and the whole answer that says so."""
        return self.status, failure(self.status, self.reason)


class QueryPages:
    """Answers requests from shards that follow the log. Thread-safe."""

    def __init__(  # noqa: PLR0913 -- what it puts together
        self,
        questions: Questions,
        asker: Asker,
        following: Following,
        metrics: Metrics,
        health: Callable[[], Health],
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take what reads questions, what answers them from which shards, and what is exported."""
        self._questions = questions
        self._asker = asker
        self._following = following
        self._metrics = metrics
        self._pages = Pages(metrics, health)
        self._clock = clock

    def answer(self, head: bytes) -> bytes:
        """Return the answer to a request without a body."""
        request = head_of(head)
        if request is not None and request.path == PATH:
            return failure(HTTPStatus.METHOD_NOT_ALLOWED, "queries are posted", allow="POST")
        return self._pages.answer(head)

    def query(self, bodies: Sequence[bytes]) -> list[bytes]:
        """Return the answers to some queries, each as if it came alone.

        Raises:
            StoreDamaged: a store isn't as it was written. Maybe only one of several asks for that.
            OSError: it can't be read.
        """
        began = self._clock()
        answered = self._answered(bodies)
        seconds = self._clock() - began
        for status, _ in answered:
            outcome = "answered" if status is HTTPStatus.OK else "refused"
            if status is HTTPStatus.SERVICE_UNAVAILABLE:
                outcome = "unready"
            self._metrics.add(table.QUERIES, 1, outcome)
        self._metrics.observe(table.QUERY_SECONDS, [seconds] * len(answered))
        return [said for _, said in answered]

    def _answered(self, bodies: Sequence[bytes]) -> list[tuple[HTTPStatus, bytes]]:
        asked = [self._read(body) for body in bodies]
        # How far the shards are must not be more than they had when they answered.
        reached = self._following.reached()
        found = self._found(asked)
        return [self._said(one, found, reached) for one in asked]

    def _read(self, body: bytes) -> list[Question | Unreadable] | _Refusal:
        try:
            return self._questions.read(body)
        except BadRequest as error:
            return _Refusal(HTTPStatus.BAD_REQUEST, str(error))

    def _found(
        self, asked: Sequence[list[Question | Unreadable] | _Refusal]
    ) -> Iterator[Answer] | _Refusal:
        """Return the answers to the questions of all, or why there are none."""
        together = [one for some in asked if isinstance(some, list) for one in some]
        try:
            return iter(self._asker.answers(self._following, together) if together else ())
        except Warming as error:
            return _Refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except (StoreDamaged, OSError) as error:
            if len(asked) > 1:
                raise
            _log.warning("a query failed: %s", error)
            return _Refusal(
                HTTPStatus.SERVICE_UNAVAILABLE, "a shard can't be read; the log says why"
            )

    def _said(
        self,
        asked: list[Question | Unreadable] | _Refusal,
        found: Iterator[Answer] | _Refusal,
        reached: Reached,
    ) -> tuple[HTTPStatus, bytes]:
        """Return the status and the whole answer; takes its own of the answers that were found."""
        if isinstance(asked, _Refusal):
            return asked.said()
        if isinstance(found, _Refusal):
            return found.said()
        answers = list(islice(found, len(asked)))
        if len(answers) == 1 and answers[0].reason is not None:
            return _Refusal(HTTPStatus.BAD_REQUEST, answers[0].reason).said()
        for one in answers:
            self._metrics.add(table.QUERY_VERDICTS, 1, one.verdict)
        reply = Reply(
            self._asker.rules.threshold,
            reached.position,
            reached.furthest_behind,
            reached.checked_seconds,
            answers,
            self._asker.rules.containment,
        )
        return HTTPStatus.OK, answer(HTTPStatus.OK, _JSON, encoded(reply))
