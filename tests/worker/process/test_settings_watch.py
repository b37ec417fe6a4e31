"""The topics' settings are looked at from time to time, not only at a start."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import pytest

from tests.worker.admin.fake import FakeCluster
from worker.admin.checks import topic_problems
from worker.admin.problem import Problem
from worker.bus import Unanswered
from worker.process.watchdog import SettingsWatch
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load


class Watched:
    """A watch over a cluster of plain values, whose checks a test starts."""

    def __init__(self) -> None:
        self.settings = load(None, {"kafka.bootstrap": "nowhere:1", "app": "a"})
        self.cluster = FakeCluster(self.settings)
        self.failures: list[ConfigurationError] = []
        self.away = False
        self.now = 0.0
        self.checks = 0
        self.watch = SettingsWatch(
            self.check, 300, self.failures.append, again_seconds=30, clock=lambda: self.now
        )

    def check(self) -> Sequence[Problem]:
        self.checks += 1
        if self.away:
            raise Unanswered("no broker answers")
        return topic_problems(self.cluster.as_cluster(), self.settings)

    def look(self, now: float) -> None:
        """Look at a time, and wait for what that has started."""
        self.now = now
        self.watch.look()
        for thread in threading.enumerate():
            if thread.name == "settings":
                thread.join(10)


@pytest.fixture
def watched(caplog: pytest.LogCaptureFixture) -> Watched:
    caplog.set_level(logging.INFO)
    return Watched()


@pytest.mark.parametrize(
    ("topic", "change", "said"),
    [
        ("documents", {"cleanup_policy": "compact"}, "drops documents before they are read"),
        ("fingerprints", {"retention_ms": "1000"}, "must be -1 (no limit)"),
        ("matches-0", {"retention_ms": "1000"}, "must be more than"),
        ("rejected", {"max_message_bytes": "1000"}, "must be at least"),
    ],
)
def test_what_no_worker_starts_with_ends_one_that_runs(
    watched: Watched,
    caplog: pytest.LogCaptureFixture,
    topic: str,
    change: dict[str, str],
    said: str,
) -> None:
    watched.look(300)
    assert (watched.checks, watched.watch.errors, caplog.messages) == (1, 0, [])
    watched.cluster.change(f"a.{topic}", **change)
    watched.look(600)
    assert watched.watch.errors == 1
    (line,) = caplog.messages
    assert line.startswith(f"changed while the worker runs: a.{topic}: ")
    assert said in line
    assert watched.failures == []
    watched.look(629)
    assert watched.checks == 2
    watched.look(630)
    (failure,) = watched.failures
    assert said in str(failure)


def test_what_is_set_back_at_once_ends_nobody(watched: Watched) -> None:
    watched.look(300)
    before = dict(watched.cluster.states)
    watched.cluster.change("a.documents", cleanup_policy="compact")
    watched.look(600)
    watched.cluster.states.update(before)
    watched.look(630)
    watched.look(930)
    assert (watched.checks, watched.watch.errors, watched.failures) == (4, 0, [])


def test_warnings_of_the_start_are_not_repeated(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.cluster.change("a.documents", compression_type="gzip")
    watched.look(300)
    watched.cluster.change("a.unique", compression_type="gzip")
    watched.look(600)
    watched.look(900)
    (line,) = caplog.messages
    assert "a.unique: compression.type" in line
    assert watched.failures == []


def test_brokers_that_do_not_answer_are_asked_again(watched: Watched) -> None:
    watched.away = True
    watched.look(300)
    watched.away = False
    watched.cluster.change("a.documents", cleanup_policy="compact")
    watched.look(600)
    watched.look(630)
    assert len(watched.failures) == 1
