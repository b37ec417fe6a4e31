"""What waits is answered together, and each body gets the answer that it would get alone."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from tests.worker.probes.attacked import connect, post, rest, status_of
from tests.worker.serve.parts import Site, body
from worker.app import Application, Environment
from worker.corrections.state import Corrections
from worker.index.errors import StoreDamaged
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.serve.answers import Answer, Refused
from worker.serve.asking import Asker, Question, Shards
from worker.serve.queries import Responder, Said
from worker.serve.server import Limits, answering
from worker.serve.service import QueryService
from worker.settings.sections import ServeSection

TEXT = "The quick brown fox jumps over the lazy dog, and then it jumps back again."
OTHER = "Something else entirely, of which there is no copy so far."
DEADLINE = 60.0
PATIENT = Limits(seconds=300)
REQUESTS = [
    body({"text": TEXT}),
    b"no JSON",
    body({"text": OTHER}),
    body({"id": "without a text"}),
    json.dumps(
        {"queries": [{"text": "new"}, {"text": ""}, {"text": TEXT + " So there!"}]}
    ).encode(),
    body({"text": TEXT.upper()}),
]
STATUSES = [200, 400, 200, 400, 200, 200]


class Service:
    """A service whose shards have some documents."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        site = stack.enter_context(Site(directory, index={"shards": 2}))
        for ident, text in (("a", TEXT), ("b", TEXT + " So there!"), ("c", OTHER)):
            site.judge({"id": ident, "text": text})
        self.metrics = Metrics()
        service = QueryService(site.settings, self.metrics, threading.Event())
        self.query = stack.enter_context(service).query
        application = Application(
            site.settings,
            site.topology,
            site.bus,
            directory / "server",
            environment=Environment(self.metrics),
        )
        self.following = service.begin(application, lambda: 0.0)

    def catch_up(self) -> None:
        for _ in range(4):
            self.following.step()

    def counted(self, outcome: str) -> float | None:
        return self.metrics.value(table.QUERIES, outcome)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with ExitStack() as stack:
        yield Service(tmp_path, stack)


def said(answers: Sequence[Said]) -> list[tuple[int, Any]]:
    """Return the status of each answer, and its JSON or why it was refused."""
    return [
        (int(one.status), {"error": str(one)})
        if isinstance(one, Refused)
        else (200, json.loads(one))
        for one in answers
    ]


def test_each_gets_the_answer_that_it_would_get_alone(service: Service) -> None:
    service.catch_up()
    alone = [said(service.query([request]))[0] for request in REQUESTS]
    assert said(service.query(REQUESTS)) == alone
    assert [status for status, _ in alone] == STATUSES
    verdicts = [[one["verdict"] for one in found.get("answers", ())] for _, found in alone]
    assert verdicts == [
        ["duplicate"], [], ["duplicate"], [], ["unique", "rejected", "duplicate"], ["duplicate"],
    ]  # fmt: skip
    assert service.counted("answered") == 2 * STATUSES.count(200)
    assert service.counted("refused") == 2 * STATUSES.count(400)


def test_what_is_no_query_is_told_so_even_if_all_others_must_wait(service: Service) -> None:
    found = said(service.query(REQUESTS[:3]))
    assert [status for status, _ in found] == [503, 400, 503]
    assert found[0][1] == {"error": "shard 0 is warming up"}
    assert "JSON is malformed" in found[1][1]["error"]


@pytest.mark.parametrize("failure", [StoreDamaged("a page"), OSError("a disk")])
def test_a_store_that_fails_for_one_query_fails_for_no_other(
    service: Service, failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.catch_up()
    answers = Asker.answers

    def failing(
        asker: Asker, shards: Shards, questions: Sequence[Any], corrections: Corrections
    ) -> list[Answer]:
        if any(isinstance(one, Question) and one.text == OTHER for one in questions):
            raise failure
        return answers(asker, shards, questions, corrections)

    monkeypatch.setattr(Asker, "answers", failing)
    # Whoever asks for several must ask again for each.
    with pytest.raises(type(failure)):
        service.query(REQUESTS)
    assert service.counted("answered") == 0
    statuses = [said(service.query([request]))[0][0] for request in REQUESTS]
    assert statuses == [200, 400, 503, 400, 200, 200]


def client_of(port: int, stack: ExitStack) -> socket.socket:
    return stack.enter_context(connect(port))


def answer(client: socket.socket) -> tuple[int, bytes]:
    """Return the status and the body of an answer that is all there is."""
    received = rest(client)
    return status_of(received), received.partition(b"\r\n\r\n")[2]


def ask(client: socket.socket, body: bytes) -> None:
    client.sendall(post(body))
    client.shutdown(socket.SHUT_WR)


def test_clients_get_their_own_answers_though_one_of_them_fails() -> None:
    """All but the first wait for it, and are answered together."""
    began, told = threading.Event(), threading.Event()
    asked: list[int] = []

    def respond(bodies: Sequence[bytes]) -> list[Said]:
        asked.append(len(bodies))
        began.set()
        assert told.wait(DEADLINE)
        if b"6" in bodies:
            raise ValueError("refused")
        return [*bodies]

    with ExitStack() as stack:
        stack.callback(told.set)
        port = stack.enter_context(answering(ServeSection(port=0), respond, 100, PATIENT))
        clients = [client_of(port, stack) for _ in range(10)]
        ask(clients[0], b"0")
        assert began.wait(DEADLINE)
        for number, client in enumerate(clients[1:], 1):
            ask(client, b"%d" % number)
        # One thread serves all connections, so whoever is refused now comes after them.
        probe = client_of(port, stack)
        probe.sendall(post(b"x" * 101))
        probe.shutdown(socket.SHUT_WR)
        assert answer(probe)[0] == 413
        told.set()
        answers = [answer(client) for client in clients]
    right = [(200, b"%d" % number) for number in range(10)]
    assert [one for one in answers if one in right] == right[:6] + right[7:]
    assert answers[6][0] == 500
    assert max(asked) > 1


def test_a_long_document_holds_up_no_short_one() -> None:
    began, told = threading.Event(), threading.Event()

    def respond(bodies: Sequence[bytes]) -> list[Said]:
        if len(bodies[0]) > 1_000:
            began.set()
            assert told.wait(DEADLINE)
        return [body[:2] for body in bodies]

    with ExitStack() as stack:
        stack.callback(told.set)
        port = stack.enter_context(answering(ServeSection(port=0), respond, 1 << 20, PATIENT))
        long, short = (client_of(port, stack) for _ in range(2))
        ask(long, b"x" * (1 << 17))
        assert began.wait(DEADLINE)
        ask(short, b"yz")
        assert answer(short) == (200, b"yz")
        told.set()
        assert answer(long) == (200, b"xx")


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
