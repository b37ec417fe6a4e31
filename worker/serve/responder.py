"""Answers what clients post: one thread answers all that has come while it was busy, together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import NamedTuple

from worker.serve.answers import Refused

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
