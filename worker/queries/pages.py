"""What ``neardup serve`` answers over HTTP: queries, metrics and its health."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from time import monotonic

from worker.http.health import Health
from worker.http.pages import Pages, answer, failure
from worker.http.requests import head_of
from worker.index.errors import StoreDamaged
from worker.metrics import Metrics
from worker.queries.answers import Answer, Reply, encoded
from worker.queries.asking import Asker
from worker.queries.following import Following, Reached, Warming
from worker.queries.questions import BadRequest, Questions

__all__ = ["PATH", "QueryPages"]

_log = logging.getLogger(__name__)

PATH = b"/v1/query"
_JSON = "application/json"


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
        self._metrics = metrics.queries
        self._pages = Pages(metrics.registry, health)
        self._clock = clock

    def answer(self, head: bytes) -> bytes:
        """Return the answer to a request without a body."""
        request = head_of(head)
        if request is not None and request.path == PATH:
            return failure(HTTPStatus.METHOD_NOT_ALLOWED, "queries are posted", allow="POST")
        return self._pages.answer(head)

    def query(self, body: bytes) -> bytes:
        """Return the answer to a query."""
        began = self._clock()
        status, said = self._answered(body)
        outcome = "answered" if status is HTTPStatus.OK else "refused"
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            outcome = "unready"
        self._metrics.asked(outcome, self._clock() - began)
        return said

    def _answered(self, body: bytes) -> tuple[HTTPStatus, bytes]:
        try:
            with self._following.asking():
                questions = self._questions.read(body)
                # How far the shards are must not be more than they had when they answered.
                reached = self._following.reached()
                answers = self._asker.answers(self._following, questions)
        except BadRequest as error:
            return _failed(HTTPStatus.BAD_REQUEST, str(error))
        except Warming as error:
            return _failed(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except (StoreDamaged, OSError) as error:
            _log.warning("a query failed: %s", error)
            return _failed(
                HTTPStatus.SERVICE_UNAVAILABLE, "a shard can't be read; the log says why"
            )
        if len(answers) == 1 and answers[0].reason is not None:
            return _failed(HTTPStatus.BAD_REQUEST, answers[0].reason)
        self._metrics.told(one.verdict for one in answers)
        return HTTPStatus.OK, answer(HTTPStatus.OK, _JSON, encoded(self._reply(reached, answers)))

    def _reply(self, reached: Reached, answers: list[Answer]) -> Reply:
        return Reply(
            self._asker.rules.threshold,
            reached.position,
            reached.furthest_behind,
            reached.checked_seconds,
            answers,
            self._asker.rules.containment,
        )


def _failed(status: HTTPStatus, reason: str) -> tuple[HTTPStatus, bytes]:
    return status, failure(status, reason)
