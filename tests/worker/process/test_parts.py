"""What the loops of a worker get that it may have died of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from worker.bus import Member
from worker.bus.careful import CarefulMember
from worker.bus.memory.bus import MemoryBus
from worker.generations.modes import Part
from worker.metrics.metrics import Metrics
from worker.offline.embedded import create_topics
from worker.process.parts import Assembly
from worker.settings.loading import load

Life = Callable[[], Assembly]


@pytest.fixture
def life(tmp_path: Path) -> Life:
    """Begin a life of one worker."""
    settings, bus = load(), MemoryBus()
    topology = settings.topology(1)
    create_topics(bus, topology)
    return lambda: Assembly(settings, topology, bus, tmp_path, metrics=Metrics())


def member(assembly: Assembly, stage: str) -> Member:
    return assembly.loop(Part(stage, load().topology(1)), "one").member


def test_partitions_are_read_carefully_only_after_a_death(life: Life) -> None:
    worker = life()
    assert not isinstance(member(worker, "fingerprint"), CarefulMember)
    worker = life()
    assert isinstance(member(worker, "fingerprint"), CarefulMember)
    assert isinstance(member(worker, "route"), CarefulMember)
    worker.end()
    assert not isinstance(member(life(), "route"), CarefulMember)
