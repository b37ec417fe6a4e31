"""What the loops of a worker share."""

from __future__ import annotations

from pathlib import Path

from worker.assembly import Assembly
from worker.bus.memory import MemoryBus
from worker.metrics import Metrics
from worker.offline.embedded import create_topics
from worker.settings import load


def test_stages_take_turns_by_the_clock_that_the_worker_was_given(tmp_path: Path) -> None:
    settings = load()
    topology, bus, now = settings.topology(1), MemoryBus(), 0.0
    create_topics(bus, topology)
    assembly = Assembly(settings, topology, bus, tmp_path, metrics=Metrics(), clock=lambda: now)
    fetches = assembly._fetches()
    assert fetches.alone("fingerprint", 0, 0)
    assert not fetches.alone("route", 0, 0)
    fetches.rest("fingerprint")
    assert not fetches.alone("fingerprint", 0, 1)
    now += 2  # *route* has not asked again, and loses its place.
    assert fetches.alone("fingerprint", 0, 1)
