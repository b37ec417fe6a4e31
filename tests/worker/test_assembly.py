"""What the loops of a worker share, and what becomes of one when the plan changes."""

from __future__ import annotations

from pathlib import Path

from worker.assembly import Assembly
from worker.bus import Offset, TopicPartition
from worker.bus.memory import MemoryBus
from worker.generations.generation import Generation
from worker.generations.modes import parts
from worker.generations.plan import Plan
from worker.generations.turns import WAITING
from worker.metrics import Metrics
from worker.offline.embedded import create_topics
from worker.settings import load
from worker.stages import Index


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


def test_an_index_that_was_built_keeps_its_stores_and_counts_as_the_one_in_use(
    tmp_path: Path,
) -> None:
    settings = load(overrides={"app": "a", "index.shards": 2})
    topology, bus, metrics = settings.topology(1), MemoryBus(), Metrics()
    create_topics(bus, topology)
    plan = Plan.of(settings).building(Generation.of(settings))
    _, built = parts(["index"], plan, topology)
    bus.create_topic(built.topology.seats, 2)
    seats = [TopicPartition(built.topology.seats, shard) for shard in range(2)]
    start = Offset(0, WAITING)
    bus.commit_offsets(
        built.topology.group("index"), dict.fromkeys(seats, start), of=topology.fingerprints
    )
    assembly = Assembly(settings, topology, bus, tmp_path, metrics=metrics)
    loop = assembly.loop(built, "one")

    def owned() -> float | None:
        labels = {"stage": "index"}
        return metrics.registry.get_sample_value("neardup_assigned_partitions", labels)

    while not loop.owned:
        loop.step(0.0)
    stage = loop.stage
    assert isinstance(stage, Index)
    stores = stage.stores()
    assert len(stores) == 2
    assert not owned()
    (used,) = parts(["index"], plan.done(), topology)
    assert assembly.succeed(used, loop) is loop
    assert (loop.stage, stage.stores(), owned()) == (stage, stores, 2)
    loop.close()
