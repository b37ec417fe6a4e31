"""What a stage processes without reading it here, and waits for room before it reads more."""

import sys
from collections.abc import Callable, Mapping, Sequence

from worker.bus import Outgoing, PartitionUnreadable, RecordBatch, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.loop.loop import Loop
from worker.loop.options import LoopOptions
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.stages.base import NOTHING, Burst

SOURCE = TopicPartition("in", 0)


class Elsewhere:
    """Has read the first ``read`` records elsewhere, and holds its own input."""

    name = "elsewhere"
    shards = None

    def __init__(self) -> None:
        self.read = 0

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],  # noqa: ARG002 -- nothing is cut
    ) -> dict[TopicPartition, int]:
        return dict(offsets)

    def process(
        self,
        batches: Sequence[RecordBatch],  # noqa: ARG002 -- it has read them
        room: int = sys.maxsize,  # noqa: ARG002 -- it writes nothing
        quiet: Mapping[TopicPartition, int] = NOTHING,  # noqa: ARG002 -- nothing is quiet
    ) -> Burst:
        offsets = {SOURCE: self.read} if self.read else {}
        return Burst((), offsets, held=frozenset({SOURCE}))

    def committed(self) -> None:
        self.read = 0

    def unreadable(self, error: PartitionUnreadable) -> int | None:
        raise error

    def close(self) -> None:
        self.read = 0


def bus_with(count: int) -> MemoryBus:
    bus = MemoryBus()
    bus.create_topic("in", 1)
    bus.commit_offsets("g", {SOURCE: 0})
    bus.append_many(Outgoing("in", 0, None, b"%d" % number) for number in range(count))
    return bus


def loop_on(
    bus: MemoryBus,
    has_room: Callable[[float], bool] = lambda _: True,
    metrics: Metrics | None = None,
) -> tuple[Loop, Elsewhere]:
    stage = Elsewhere()
    options = LoopOptions(max_records=2)
    member = bus.join("g", ["in"], "one")
    return Loop(stage, member, options=options, metrics=metrics, has_room=has_room), stage


def test_what_was_processed_without_being_read_here_is_no_lag() -> None:
    loop, stage = loop_on(bus_with(10))
    loop.step(0)
    loop.step(0)
    assert loop.lag() == {SOURCE: 8}
    stage.read = 8
    loop.step(0)
    assert loop.lag() == {SOURCE: 2}
    assert loop.catching_up
    stage.read = 10
    loop.step(0)
    loop.lag()
    assert loop.lag() == {SOURCE: 0}
    assert not loop.catching_up


def test_what_was_processed_without_being_read_here_has_no_age() -> None:
    now = 1_000.0
    metrics, bus = Metrics(clock=lambda: now), bus_with(3)
    loop, stage = loop_on(bus, metrics=metrics)
    loop.step(0)
    loop.step(0)
    for done in range(2, 100):
        bus.append(Outgoing("in", 0, None, b"more"))
        loop.lag()
        now += 1
        stage.read = done
        loop.step(0)
        assert loop.lag() == {SOURCE: 2}
        for gauge in (table.CONSUMER_LAG_SECONDS, table.WATERMARK_AGE_SECONDS):
            age = metrics.value(gauge, stage.name)
            assert age is not None
            assert 1 <= age <= 3


def test_nothing_is_read_while_there_is_no_room() -> None:
    asked: list[float] = []

    def has_room(seconds: float) -> bool:
        asked.append(seconds)
        return len(asked) > 2

    loop, _ = loop_on(bus_with(10), has_room)
    for _ in range(2):
        assert not loop.step(0.25)
        assert not loop.busy
        assert not loop.assigned
    loop.step(0.25)
    assert loop.assigned == {SOURCE}
    assert asked == [0.25] * 3
