"""What a loop notes of its seat in the group."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from worker.bus import OffsetOutOfRange, Outgoing, Record, TopicPartition
from worker.bus.memory import MemoryBus
from worker.loop import Loop
from worker.metrics import Metrics
from worker.stages import Burst
from worker.stages.base import StatelessStage

SOURCE = TopicPartition("in", 0)


class Copier(StatelessStage):
    """Copies each burst."""

    name = "copier"
    topics = ("in",)

    def process(self, records: Sequence[Record], room: int = sys.maxsize) -> Burst | None:
        del room
        if not records:
            return None
        copies = [Outgoing("out", 0, None, record.value) for record in records]
        return Burst(copies, {SOURCE: records[-1].offset + 1})

    def out_of_range(self, error: OffsetOutOfRange) -> int:
        return error.low


class Watched:
    """A loop with its metrics."""

    def __init__(self, bus: MemoryBus, instance: str) -> None:
        metrics = Metrics()
        self.loop = Loop(Copier(), bus.join("g", ["in"], instance), events=metrics.loop("copier"))
        self._registry = metrics.registry

    def sample(self, name: str) -> float | None:
        return self._registry.get_sample_value(f"neardup_{name}", {"stage": "copier"})

    def seat(self) -> tuple[bool, float | None]:
        """Poll once; return whether it is seated, and on how many partitions."""
        self.loop.step(0)
        return self.loop.seated, self.sample("assigned_partitions")


def a_bus() -> MemoryBus:
    bus = MemoryBus()
    for topic in ("in", "out"):
        bus.create_topic(topic, 1)
    bus.commit_offsets("g", {SOURCE: 0})
    return bus


def test_a_seat_that_is_lost_and_comes_back() -> None:
    bus = a_bus()
    one = Watched(bus, "one")
    assert not one.loop.seated
    assert one.seat() == (True, 1)
    bus.silence("g")
    assert one.seat() == (False, 0)
    assert one.seat() == (False, 0)
    assert one.sample("rebalances_total") == 1
    bus.answer("g")
    assert one.seat() == (True, 1)
    assert one.sample("rebalances_total") == 2
    bus.append(Outgoing("in", 0, None, b"a"))
    one.loop.step(0)
    assert [record.value for record in bus.read("out", 0, 0, 10)] == [b"a"]


def test_a_seat_that_is_lost_during_a_transaction() -> None:
    """The loop starts again from the committed offsets, and still has no seat."""
    bus = a_bus()
    one = Watched(bus, "one")
    one.seat()
    bus.append(Outgoing("in", 0, None, b"a"))

    def lose(step: str, _group: str, _instance: str) -> None:
        if step == "offsets":
            bus.evict("g", "one")
            bus.silence("g")

    bus.faults = lose
    assert one.seat() == (False, 0)
    bus.answer("g")
    assert one.seat() == (True, 1)


def test_a_member_for_which_no_partition_is_left_has_its_seat() -> None:
    bus = a_bus()
    both = [Watched(bus, name) for name in ("one", "two")]
    assert [one.seat() for one in both] == [(True, 1), (True, 0)]
