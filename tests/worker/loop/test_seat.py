"""What a loop notes of its seat in the group."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tests.support.brokers import Brokers
from tests.support.copying import Copier
from worker.bus import Outgoing, RecordBatch, TopicPartition
from worker.loop.loop import Loop
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.stages.base import NOTHING, Burst

SOURCE = TopicPartition("in", 0)


class Holder(Copier):
    """Reads nothing, and commits where it stands."""

    def __init__(self) -> None:
        self._left: dict[TopicPartition, int] = {}

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        del watermarks
        self._left = {place: 100 + at for place, at in offsets.items()}
        return {}

    def process(
        self,
        batches: Sequence[RecordBatch],
        room: int = sys.maxsize,
        quiet: Mapping[TopicPartition, int] = NOTHING,
    ) -> Burst:
        del room, quiet
        assert not batches
        left, self._left = self._left, {}
        return Burst((), left)


class Watched:
    """A loop with its metrics."""

    def __init__(self, bus: Brokers, instance: str) -> None:
        self.metrics = Metrics()
        member = bus.join("g", ["in"], instance)
        self.loop = Loop(Copier(), member, metrics=self.metrics)

    def assigned(self) -> float | None:
        return self.metrics.value(table.ASSIGNED_PARTITIONS, "copier")

    def seat(self) -> tuple[bool, float | None]:
        """Poll once; return whether it is seated, and on how many partitions."""
        self.loop.step(0)
        return self.loop.seated, self.assigned()


def a_bus() -> Brokers:
    bus = Brokers()
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
    assert one.metrics.value(table.REBALANCES, "copier") == 1
    bus.answer("g")
    assert one.seat() == (True, 1)
    assert one.metrics.value(table.REBALANCES, "copier") == 2
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


def test_a_successor_adopts_what_the_seat_has_and_reads_no_more_than_it_wants() -> None:
    bus = a_bus()
    one = Watched(bus, "one").loop
    one.step(0)
    bus.append(Outgoing("in", 0, None, b"a"))
    one.step(0)
    later = Loop(Holder(), one.member)
    later.take_over(one)
    bus.append(Outgoing("in", 0, None, b"b"))
    assert [later.step(0) for _ in range(3)] == [False, True, False]
    assert later.seated
    assert bus.committed("g") == {SOURCE: 101}
    assert later.member.positions() == {SOURCE: 1}  # Nothing is fetched, only to be dropped.
    assert [record.value for record in bus.read("out", 0, 0, 10)] == [b"a"]


def test_a_successor_of_one_that_never_took_a_step() -> None:
    bus = a_bus()
    one = Watched(bus, "one").loop
    one.step(0)
    bus.append(Outgoing("in", 0, None, b"a"))
    second, third = Loop(Copier(), one.member), Loop(Copier(), one.member)
    second.take_over(one)
    third.take_over(second)
    assert [third.step(0) for _ in range(2)] == [False, True]
    assert bus.committed("g") == {SOURCE: 1}


def test_a_successor_in_a_seat_that_was_lost_waits_for_the_next_one() -> None:
    bus = a_bus()
    one = Watched(bus, "one").loop
    one.step(0)
    bus.silence("g")
    one.step(0)
    later = Loop(Holder(), one.member)
    later.take_over(one)
    later.step(0)
    assert (later.seated, bus.committed("g")) == (False, {SOURCE: 0})
    bus.answer("g")
    later.step(0)
    later.step(0)
    assert (later.seated, bus.committed("g")) == (True, {SOURCE: 100})


def test_who_is_succeeded_is_in_no_metric_any_more() -> None:
    bus = a_bus()
    one = Watched(bus, "one")
    one.seat()
    bus.append(Outgoing("in", 0, None, b"a"))
    one.loop.lag()
    lag = partial(one.metrics.value, table.CONSUMER_LAG_RECORDS, "copier", "in", "0")
    assert (one.assigned(), lag()) == (1, 1)
    Loop(Holder(), one.loop.member).take_over(one.loop)
    assert (one.assigned(), lag()) == (0, None)
