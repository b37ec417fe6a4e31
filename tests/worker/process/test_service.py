"""What a worker sees of its stages."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tests.support.brokers import Brokers
from tests.support.copying import Copier
from tests.support.filling import fill
from worker.bus import Outgoing, TopicPartition
from worker.generations.generation import Generation
from worker.generations.modes import Part, parts
from worker.generations.plan import Plan
from worker.loop.loop import Loop
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.offline.embedded import create_topics
from worker.probes.probes import Health
from worker.process.parts import PartThread
from worker.process.service import Service, _pulse, show_what_is_built
from worker.settings.loading import load
from worker.stages.base import RestoreState, Status


class Restoring(Copier):
    """A stage of which only the status of its shards matters."""

    name = "index"

    def __init__(self, status: Status) -> None:
        self.now = status
        self.shards = self

    def idle(self) -> None:
        return

    def status(self) -> Status:
        return self.now


def failed(error: BaseException) -> None:
    pytest.fail(str(error))


def run(service: Service, loop: Loop) -> None:
    """Give a service an open loop of its index."""
    (part,) = parts(["index"], service._plan, service._base)
    one = PartThread(
        part, lambda _part, _former: loop, threading.Event(), lambda error: pytest.fail(str(error))
    )
    one.loop = loop
    service.add(one)


def test_a_worker_that_has_lost_its_seat_or_kafka_is_not_ready(tmp_path: Path) -> None:
    bus, settings = Brokers(), load(None, {"worker.stages": "index"})
    bus.create_topic("in", 1)
    bus.commit_offsets("g", {TopicPartition("in", 0): 0})
    service = Service(settings, settings.topology(1), bus, tmp_path, "one")
    loop = Loop(Restoring(Status()), bus.join("g", ["in"], "one"))
    run(service, loop)

    def health() -> Health:
        loop.step(0)
        loop.lag()
        return service.health()

    assert service.health().waiting == ["index"]
    assert health().ready
    bus.silence("g")
    assert health().waiting == ["index"]
    bus.answer("g")
    assert health().ready
    bus.silent_seconds = settings.kafka.session_timeout_ms / 1_000
    assert health().ready
    bus.silent_seconds += 1
    assert not health().ready
    assert health().alive
    loop.close()


def test_a_worker_that_holds_a_sealed_log_is_not_behind(tmp_path: Path) -> None:
    bus, settings = Brokers(), load(None, {"worker.stages": "fingerprint"})
    topology = settings.topology(1)
    create_topics(bus, topology)
    bus.append(Outgoing(topology.documents, 0, None, b"{}"))
    service = Service(settings, topology, bus, tmp_path, "one")
    following = msgspec.structs.replace(Generation.fingerprinted(settings), log=1)
    plan = service._plan.start_build(following).seal()
    sealing, _, ahead = parts(["fingerprint"], plan, topology)
    for part, held in ((Part("fingerprint", topology), False), (sealing, True)):
        assert part.mode.holds == held
        loop = service._assembly.loop(part, "one")
        loop.step(0)
        loop.lag()
        assert loop.catching_up
        one = PartThread(part, lambda _part, _former: loop, threading.Event(), failed)  # noqa: B023
        one.loop = loop
        service.add(one)
        assert (service.health().catching_up == []) == held
        loop.close()
    assert ahead.mode.holds
    begun = plan.hand_over().begin_log([1])
    assert not parts(["fingerprint"], begun, topology)[-1].mode.holds
    assert not parts(["fingerprint"], begun.finish(), topology)[-1].mode.holds


def test_health_and_watchdog_see_what_is_restored(tmp_path: Path) -> None:
    bus, settings = Brokers(), load()
    bus.create_topic("in", 1)
    service = Service(settings, settings.topology(1), bus, tmp_path, "one")
    stage = Restoring(Status(restoring={0: RestoreState(remaining=9)}, restored=4))
    loop = Loop(stage, bus.join("g", ["in"], "one"))
    run(service, loop)
    assert service.health().restoring == ["index"]
    assert _pulse(loop).restored == 4
    stage.now = Status(restored=13)
    assert service.health().restoring == []
    assert _pulse(loop).restored is None
    loop.close()


def test_the_index_of_a_generation_is_in_use_until_its_part_has_ended(tmp_path: Path) -> None:
    bus, settings = Brokers(), load(None, {"worker.stages": "index"})
    service = Service(settings, settings.topology(1), bus, tmp_path, "one")
    current = service._plan.current
    assert service._indexes() == {}
    ending = threading.Event()
    (part,) = parts(["index"], service._plan, service._base)
    one = PartThread(part, lambda _part, _former: pytest.fail("built"), threading.Event(), failed)
    one.thread = threading.Thread(target=ending.wait, daemon=True)
    one.thread.start()
    service._leaving = [one]
    assert service._indexes() == {current: None}
    ending.set()
    one.thread.join()
    assert service._indexes() == {}
    service.add(one)
    assert service._indexes() == {current: None}


def test_a_worker_says_what_it_takes_of_its_memory(tmp_path: Path) -> None:
    bus, settings = Brokers(), load(None, {"worker.memory": "512MiB"})
    topology = settings.topology(1)
    create_topics(bus, topology)
    service = Service(settings, topology, bus, tmp_path, "one")
    plan = Plan.of(settings)
    (index,) = parts(["index"], plan, topology)
    store = service._assembly._application(index).directories.open(0)
    fill(store, 1, 1_000)
    service._measure()
    shares = settings.memory()

    share = partial(service.metrics.value, table.MEMORY_SHARE_BYTES)
    taken = partial(service.metrics.value, table.MEMORY_BYTES)
    assert share("worker") == 512 << 20
    assert share("write_buffers") == shares.write_buffers
    assert share("lanes") == shares.lanes
    assert share("cache") == shares.most_cache
    assert taken("postings") == store.held_bytes() > 0
    assert 0 < (taken("write_buffers") or 0) < shares.write_buffers
    store.close()


def test_what_the_next_generation_has_to_read_is_shown_while_it_is_built() -> None:
    metrics = Metrics()
    seats = {TopicPartition("g1.shards", 0): 4, TopicPartition("g1.shards", 2): 5}
    anew = {TopicPartition("fingerprints", 0): 7}
    show_what_is_built(metrics, {"index": seats, "refingerprint": anew})
    assert metrics.numbers(table.BUILDING_REMAINING_RECORDS) == {("0",): 4, ("2",): 5}
    assert metrics.value(table.REWRITING_REMAINING_RECORDS) == 7
    show_what_is_built(metrics, {})
    assert metrics.numbers(table.BUILDING_REMAINING_RECORDS) == {}
    assert metrics.value(table.REWRITING_REMAINING_RECORDS) == 0
