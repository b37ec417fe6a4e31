"""The watchdogs: what each takes for a good sign, when it warns, and when it is over."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.breadth import slow
from worker.process.service import EXIT_HUNG
from worker.process.watchdog import Alarm, Pulse, Watchdog, where
from worker.settings.sections import Watch

LIMITS: dict[Watch, float] = {
    "poll": 120,
    "transaction": 60,
    "progress": 600,
    "restore": 240,
}


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Kennel:
    """A watchdog with a clock that only the test moves."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.dog = Watchdog(LIMITS, self.clock)

    def after(self, seconds: float, **pulse: float | None) -> list[Alarm]:
        """Let time pass, and look at a stage that polls; times are given in seconds ago."""
        self.clock.now += seconds
        now = self.clock.now
        ago = {"beat": 0.0, "moved": 0.0, **pulse}
        for name in ("beat", "moved", "transacting"):
            if (value := ago.get(name)) is not None:
                ago[name] = now - value
        return self.dog.look({"index": Pulse(**ago)})  # type: ignore[arg-type]


def test_a_stage_that_gets_on_raises_no_alarm() -> None:
    kennel = Kennel()
    for restored in range(100):
        pulse = {"moved": 5.0, "behind": 10_000, "transacting": 1.0, "restored": restored}
        assert kennel.after(50, **pulse) == []


def test_an_idle_stage_is_well_for_ever() -> None:
    kennel = Kennel()
    assert kennel.after(1e6, moved=1e6, behind=0) == []


@pytest.mark.parametrize(
    ("pulse", "watch", "limit"),
    [
        ({"beat": 1.0}, "poll", 120.0),
        ({"transacting": 1.0}, "transaction", 60.0),
        ({"moved": 1.0, "behind": 7}, "progress", 600.0),
        ({"restored": 5}, "restore", 240.0),
    ],
)
def test_each_watch_warns_at_a_quarter_and_ends_at_its_limit(
    pulse: dict[str, float], watch: Watch, limit: float, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "worker.process.watchdog")
    kennel = Kennel()
    timed = set(pulse) & {"beat", "transacting", "moved"}

    def at(age: float) -> list[Alarm]:
        """Look at the moment at which nothing good has been seen for so long."""
        began = 1_000.0
        return kennel.after(
            began + age - kennel.clock.now, **{**pulse, **dict.fromkeys(timed, age)}
        )

    assert at(0) == []
    assert at(limit / 4 - 1) == []
    (warned,) = at(limit / 4)
    assert (warned.stage, warned.watch, warned.over) == ("index", watch, False)
    (again,) = at(limit - 1)
    assert not again.over
    assert len(caplog.records) == 1
    assert f"At {limit:.0f} s this worker exits" in caplog.text
    (ended,) = at(limit)
    assert ended.over
    assert ended.hangs == (watch in {"poll", "transaction"})
    assert kennel.after(1, behind=0) == []
    assert caplog.messages[1:] == [f"stage index: the watchdog {watch} sees progress again"]


def test_waiting_counts_from_when_there_was_something_to_read() -> None:
    kennel = Kennel()
    kennel.after(0, moved=5_000, behind=0)
    assert kennel.after(149, moved=5_149, behind=3) == []
    assert kennel.after(149, moved=5_298, behind=3) == []
    assert [alarm.watch for alarm in kennel.after(149, moved=5_447, behind=3)] == ["progress"]


def test_a_restore_that_begins_anew_counts_from_there() -> None:
    kennel = Kennel()
    kennel.after(0, restored=5)
    kennel.after(59, restored=5)
    kennel.after(1, restored=None)
    assert kennel.after(100, restored=5) == []
    assert kennel.after(59, restored=5) == []
    assert [alarm.watch for alarm in kennel.after(1, restored=5)] == ["restore"]


def test_what_is_over_comes_first() -> None:
    kennel = Kennel()
    alarms = kennel.after(0, beat=50, transacting=61)
    assert [(alarm.watch, alarm.over) for alarm in alarms] == [
        ("transaction", True),
        ("poll", False),
    ]


def test_where_a_thread_is() -> None:
    lines = list(where(threading.get_ident()))
    assert any("test_where_a_thread_is" in line for line in lines)
    assert list(where(-1)) == []


_HANGS = """
import ctypes, os, sys, threading
from pathlib import Path
from worker.bus.memory.bus import MemoryBus
from worker.offline.embedded import create_topics
from worker.process.logs import set_up
from worker.process.service import Service
from worker.settings.loading import load
from worker.topology import Topology

set_up("info", "text")
settings = load(None, {"worker.stages": "fingerprint"})
section = settings.watchdog.model_copy(update={"poll_seconds": float(sys.argv[3])})
settings = settings.model_copy(update={"watchdog": section})
topology = settings.topology(1)

def hang(*_):
    if sys.argv[2] == "locked up":
        ctypes.PyDLL(None).sleep(600)  # Holds the interpreter's lock.
    threading.Event().wait()

class Bus:
    def join(self, group, topics, instance, *, compress, of):
        bus = MemoryBus()  # Belongs to the stage's thread.
        create_topics(bus, topology)
        member = bus.join(group, topics, instance)
        member.poll = hang
        return member

    def identity(self, topic):
        return topic

    def log_reader(self, group, topics, *, single):
        raise AssertionError("no partition is given, so nothing is read")

    def queued(self):
        return {}

    silent_seconds = 0.0

Service(settings, topology, Bus(), Path(sys.argv[1]), "one").run()
"""


@pytest.mark.parametrize(
    ("how", "seconds", "status", "said"),
    [
        # The worker looks every second. On a slow machine a short limit would seem a lock-up.
        ("waits", 3.0, EXIT_HUNG, "stage fingerprint has not polled for 3 s"),
        slow("locked up", 1.0, 1, "Timeout (0:00:01.500000)!"),
    ],
)
def test_a_worker_with_a_stage_that_hangs_ends_itself(
    tmp_path: Path, how: str, seconds: float, status: int, said: str
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _HANGS, str(tmp_path), how, str(seconds)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ended.returncode == status, ended.stderr
    assert said in ended.stderr
    assert "in hang" in ended.stderr or " hang\n" in ended.stderr
