"""Answers queries that clients post: one thread answers all that has come meanwhile, together."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from http import HTTPStatus
from itertools import islice
from queue import Empty, SimpleQueue
from time import monotonic
from typing import NamedTuple

from worker.formats.unreadable import Unreadable
from worker.index.errors import StoreDamaged
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.serve.answers import Answer, Refused, Reply, encoded
from worker.serve.asking import Asker, BadRequest, Question, Questions
from worker.serve.following import Following, Reached, Warming

_log = logging.getLogger(__name__)

PATH = "/v1/query"


Said = bytes | Refused
"""An answer in JSON, or why there is none."""
Respond = Callable[[Sequence[bytes]], Sequence[Said]]
"""Returns the answers to some bodies, in their order. If it raises, it gets each of them alone, and
what it raises then is the failure of that one."""


class _Posted(NamedTuple):
    """A body, and who waits for its answer."""

    body: bytes
    answer: asyncio.Future[bytes]


class Responder:
    """Answers bodies in a thread of its own.

    Several threads would take Python from each other at every step, and be no sooner done. Bodies
    that are answered together cost less than one by one, so a burst is worked off all the faster.
    """

    def __init__(self, respond: Respond, together: int) -> None:
        """Begin; ``together`` is how many bodies are answered at once, at most."""
        self._respond = respond
        self._together = together
        self._waiting: SimpleQueue[_Posted | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="query", daemon=True)
        self._thread.start()

    async def answer(self, body: bytes) -> bytes:
        """Return the answer to a body; if this is cancelled before its turn, none is made.

        Raises:
            Refused: the body is refused.
            Exception: what its answer failed with.
        """
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.put(_Posted(body, future))
        return await future

    def end(self) -> None:
        """Answer what waits, and end the thread. Call it once, when nobody asks any more."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        over = False
        while not over:
            posted = [self._waiting.get()]
            with suppress(Empty):
                while len(posted) < self._together:
                    posted.append(self._waiting.get_nowait())
            over = posted[-1] is None
            wanted = [one for one in posted if one is not None and not one.answer.done()]
            if wanted:
                self._answer(wanted)

    def _answer(self, posted: Sequence[_Posted]) -> None:
        answers: Sequence[Said | Exception]
        try:
            answers = self._respond([one.body for one in posted])
        except Exception as error:  # noqa: BLE001 -- it is raised to whoever asked
            if len(posted) > 1:
                for one in posted:
                    self._answer([one])
                return
            answers = [error]
        pairs = list(zip(posted, answers, strict=True))
        with suppress(RuntimeError):  # Nobody waits any more: the loop was closed.
            posted[0].answer.get_loop().call_soon_threadsafe(_tell, pairs)


def _tell(pairs: Sequence[tuple[_Posted, Said | Exception]]) -> None:
    """Give those who wait their answers."""
    for (_, future), answer in pairs:
        if future.done():  # It was cancelled.
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)


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
