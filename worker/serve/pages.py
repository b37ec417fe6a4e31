"""What ``neardup serve`` answers to queries, and what it counts of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from itertools import islice
from time import monotonic

from worker.formats.unreadable import Unreadable
from worker.index.errors import StoreDamaged
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.serve.answers import Answer, Refused, Reply, encoded
from worker.serve.asking import Asker
from worker.serve.following import Following, Reached, Warming
from worker.serve.questions import BadRequest, Question, Questions
from worker.serve.responder import Said

_log = logging.getLogger(__name__)

PATH = "/v1/query"


class QueryPages:
    """Answers requests from shards that follow the log. Thread-safe."""

    def __init__(
        self,
        questions: Questions,
        asker: Asker,
        following: Following,
        metrics: Metrics,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take what reads questions, what answers them from which shards, and what is exported."""
        self._questions = questions
        self._asker = asker
        self._following = following
        self._metrics = metrics
        self._clock = clock

    def query(self, bodies: Sequence[bytes]) -> list[Said]:
        """Return the answers to some queries, each as if it came alone.

        Raises:
            StoreDamaged: a store isn't as it was written. Maybe only one of several asks for that.
            OSError: it can't be read.
        """
        began = self._clock()
        try:
            answered = self._answered(bodies)
        except (StoreDamaged, OSError) as why:
            if len(bodies) > 1:
                raise
            _log.warning("a query failed: %s", why)
            reason = "a shard can't be read; the log says why"
            answered = [Refused(HTTPStatus.SERVICE_UNAVAILABLE, reason)]
        seconds = self._clock() - began
        for said in answered:
            outcome = "refused" if isinstance(said, Refused) else "answered"
            if isinstance(said, Refused) and said.status is HTTPStatus.SERVICE_UNAVAILABLE:
                outcome = "unready"
            self._metrics.add(table.QUERIES, 1, outcome)
        self._metrics.observe(table.QUERY_SECONDS, [seconds] * len(answered))
        return answered

    def _answered(self, bodies: Sequence[bytes]) -> list[Said]:
        asked = [self._read(body) for body in bodies]
        # How far the shards are must not be more than they had when they answered.
        reached = self._following.reached()
        together = [one for some in asked if not isinstance(some, Refused) for one in some]
        try:
            answers = iter(self._answers(together))
        except Refused as why:
            return [one if isinstance(one, Refused) else why for one in asked]
        return [self._said(one, answers, reached) for one in asked]

    def _read(self, body: bytes) -> list[Question | Unreadable] | Refused:
        try:
            return self._questions.read(body)
        except BadRequest as why:
            return Refused(HTTPStatus.BAD_REQUEST, str(why))

    def _answers(self, questions: Sequence[Question | Unreadable]) -> list[Answer]:
        """Return the answers to the questions of all.

        Raises:
            Refused: the shards can't be read yet.
        """
        if not questions:
            return []
        try:
            return self._asker.answers(self._following, questions, self._following.corrections())
        except Warming as why:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, str(why)) from None

    def _said(
        self,
        asked: list[Question | Unreadable] | Refused,
        found: Iterator[Answer],
        reached: Reached,
    ) -> Said:
        """Return the answer to a body; takes its own of the answers that were found."""
        if isinstance(asked, Refused):
            return asked
        answers = list(islice(found, len(asked)))
        if len(answers) == 1 and answers[0].reason is not None:
            return Refused(HTTPStatus.BAD_REQUEST, answers[0].reason)
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
        return encoded(reply)
