"""What waits is answered together, and each body gets its own answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import wraps

import pytest

from worker.serve.responder import Responder, Said

DEADLINE = 20.0
TOGETHER = 4


def in_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    """Return a test that runs in an event loop."""

    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Answers:
    """Answers bodies with themselves in capitals, once it is told to; refuses ``bad``."""

    def __init__(self) -> None:
        self.asked: list[list[bytes]] = []
        self.busy = threading.Event()
        self.told = threading.Event()

    def __call__(self, posted: Sequence[bytes]) -> list[Said]:
        self.asked.append(list(posted))
        self.busy.set()
        assert self.told.wait(DEADLINE)
        if b"bad" in posted:
            raise ValueError("refused")
        return [body.upper() for body in posted]


@contextmanager
def responding(answers: Answers) -> Iterator[Responder]:
    responder = Responder(answers, TOGETHER)
    try:
        yield responder
    finally:
        answers.told.set()
        responder.end()


@asynccontextmanager
async def waiting(
    answers: Answers, responder: Responder, posted: Sequence[bytes]
) -> AsyncIterator[list[asyncio.Task[bytes]]]:
    """Yield what waits for answers to bodies, of which the thread has only begun the first."""
    tasks = [asyncio.create_task(responder.answer(posted[0]))]
    await asyncio.sleep(0)  # It asks.
    assert await asyncio.to_thread(answers.busy.wait, DEADLINE)
    tasks += [asyncio.create_task(responder.answer(body)) for body in posted[1:]]
    await asyncio.sleep(0)
    async with asyncio.timeout(DEADLINE):
        yield tasks


@in_a_loop
async def test_what_comes_meanwhile_is_answered_together_but_never_too_much() -> None:
    answers = Answers()
    with responding(answers) as responder:
        async with waiting(answers, responder, [b"a", b"b", b"c", b"d", b"e", b"f"]) as tasks:
            answers.told.set()
            assert await asyncio.gather(*tasks) == [b"A", b"B", b"C", b"D", b"E", b"F"]
    assert answers.asked == [[b"a"], [b"b", b"c", b"d", b"e"], [b"f"]]


@in_a_loop
async def test_one_that_fails_fails_alone() -> None:
    answers = Answers()
    with responding(answers) as responder:
        async with waiting(answers, responder, [b"a", b"b", b"bad", b"c"]) as tasks:
            answers.told.set()
            said = await asyncio.gather(*tasks, return_exceptions=True)
    failed = said.pop(2)
    assert isinstance(failed, ValueError)
    assert said == [b"A", b"B", b"C"]
    assert answers.asked[1:] == [[b"b", b"bad", b"c"], [b"b"], [b"bad"], [b"c"]]


@in_a_loop
async def test_one_that_is_given_up_is_not_answered() -> None:
    answers = Answers()
    with responding(answers) as responder:
        async with waiting(answers, responder, [b"a", b"b", b"c"]) as tasks:
            for given_up in tasks[:2]:
                given_up.cancel()
            await asyncio.wait(tasks[:2])
            answers.told.set()
            assert await tasks[2] == b"C"
        assert all(given_up.cancelled() for given_up in tasks[:2])
    assert answers.asked == [[b"a"], [b"c"]]


@in_a_loop
async def test_what_waits_at_the_end_is_answered() -> None:
    answers = Answers()
    responder = Responder(answers, TOGETHER)
    async with waiting(answers, responder, [b"a", b"b"]) as tasks:
        ending = threading.Thread(target=responder.end)
        ending.start()
        answers.told.set()
        assert await asyncio.gather(*tasks) == [b"A", b"B"]
    ending.join(DEADLINE)
    assert not ending.is_alive()


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_it_ends_though_nobody_waits_for_the_answer_any_more() -> None:
    answers = Answers()
    responder = Responder(answers, TOGETHER)

    async def given_up() -> None:
        async with waiting(answers, responder, [b"a"]):
            pass

    asyncio.run(given_up())  # This cancels what waits, and closes the loop.
    answers.told.set()
    responder.end()
    assert answers.asked == [[b"a"]]
