"""A start waits for Kafka with growing pauses, and ends at once when it is told to."""

from __future__ import annotations

import json
import logging
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from localkafka.broker import wait_until
from tests.support.worker_process import WorkerProcess
from worker.bus import BusError, Unanswered
from worker.process.outage import aside, until_answered


class Pauses(threading.Event):
    """Records how long it was waited for, and is set after so many pauses."""

    def __init__(self, most: int = 100) -> None:
        super().__init__()
        self.seconds: list[float | None] = []
        self._most = most

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        if len(self.seconds) >= self._most:
            self.set()
        return self.is_set()


def unanswered(times: int) -> Iterator[Exception | str]:
    for number in range(times):
        yield Unanswered(f"no broker of kafka:9092 answers ({number})")
    yield "found"


def test_it_is_waited_for_with_growing_pauses_and_two_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    results = unanswered(6)

    def attempt() -> str:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    pauses = Pauses()
    with caplog.at_level(logging.INFO):
        assert until_answered(attempt, pauses) == "found"
    assert pauses.seconds == [1, 2, 4, 8, 15, 15]
    assert caplog.messages == [
        "waiting for Kafka: no broker of kafka:9092 answers (0)",
        "Kafka answers again, after 0 s",
    ]


def test_what_answers_at_once_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert until_answered(lambda: 5, Pauses()) == 5
    assert caplog.messages == []


def test_a_refusal_is_not_waited_for() -> None:
    def refuse() -> int:
        raise BusError("not authorized")

    pauses = Pauses()
    with pytest.raises(BusError, match="not authorized"):
        until_answered(refuse, pauses)
    assert pauses.seconds == []


def test_a_stop_ends_the_wait() -> None:
    def never() -> int:
        raise Unanswered("no broker")

    assert until_answered(never, Pauses(most=3)) is None


def test_a_stop_does_not_wait_for_a_call_that_hangs() -> None:
    stopping, asked, answered = threading.Event(), threading.Event(), threading.Event()

    def hang() -> int:
        asked.set()
        stopping.set()
        answered.wait()
        return 5

    assert aside(hang, stopping) is None
    assert asked.is_set()
    answered.set()


def test_what_a_call_raises_is_passed_on() -> None:
    def late() -> int:
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        aside(late, threading.Event())
    assert aside(lambda: 5, threading.Event()) == 5


def page(address: str, path: str) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(f"{address}{path}", timeout=5) as answer:  # noqa: S310 -- ours
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.slow
def test_a_worker_without_a_broker_is_alive_and_not_ready_and_stops_at_once(
    tmp_path: Path,
) -> None:
    config = tmp_path / "neardup.toml"
    config.write_text('[kafka]\nbootstrap = "127.0.0.1:1"\n')
    worker = WorkerProcess("waiting", config, tmp_path / "waiting")
    worker.start("--http", "127.0.0.1:0")
    try:
        worker.await_text("metrics and health on ")
        address = worker.current().partition("metrics and health on ")[2].split()[0]
        status, health = page(address, "/healthz")
        assert (status, health["waiting"]) == (200, ["fingerprint", "index", "route"])
        assert page(address, "/readyz")[0] == 503
        worker.await_text("waiting for Kafka: no broker of 127.0.0.1:1 answers within 8 s: ")
        assert worker.running
        worker.signal(signal.SIGTERM)
        assert worker.wait(5) == 0
        assert worker.current().splitlines()[-1].endswith("stopped cleanly")
    finally:
        if worker.running:
            worker.kill()


@pytest.mark.slow(ci=False)
def test_a_host_that_has_no_address_yet_is_named_and_waited_for(tmp_path: Path) -> None:
    config = tmp_path / "neardup.toml"
    config.write_text('[kafka]\nbootstrap = "no-such-host.invalid:9092"\n')
    worker = WorkerProcess("nameless", config, tmp_path / "nameless")
    worker.start()
    try:
        worker.await_text("waiting for Kafka: no broker of no-such-host.invalid:9092 answers")
        wait_until(lambda: "resolve" in worker.current(), 5, "the reason")
        worker.signal(signal.SIGTERM)
        assert worker.wait(5) == 0
    finally:
        if worker.running:
            worker.kill()
