"""A loop whose member can't read a range of its input: the stage decides how it goes on."""

from __future__ import annotations

import pytest

from tests.support.copying import Copier
from tests.support.notes import KeptNotes
from tests.support.stages import LAYOUT, document, fingerprint
from worker.bus import Outgoing, PartitionUnreadable, TopicPartition
from worker.bus.careful import CarefulMember, CarefulReader
from worker.bus.last_life import LastLife
from worker.bus.memory.bus import MemoryBus
from worker.loop.loop import Loop
from worker.stages.base import Stage
from worker.wire.codec import decode
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.frame import SetAside

PLACE = TopicPartition("documents", 0)
COUNT = 10
ASIDE = range(3, 6)


class Passing(Copier):
    """Copies what it reads, and goes on after what it can't."""

    def unreadable(self, error: PartitionUnreadable) -> int | None:
        assert error.position in ASIDE
        return ASIDE.stop


def a_bus() -> MemoryBus:
    bus = MemoryBus()
    for topic in ("documents", "out", "rejected", "app.fingerprints"):
        bus.create_topic(topic, 1)
    bus.commit_offsets("g", {PLACE: 0})
    for number in range(COUNT):
        bus.append(Outgoing(*PLACE, None, document(number).value))
    return bus


def a_loop(bus: MemoryBus, stage: Stage) -> Loop:
    batches = LastLife("documents", "id", KeptNotes(), 1).batches
    reader = CarefulReader("g", batches, lambda: bus.log_reader("g", ["documents"], single=True))
    member = CarefulMember(bus.join("g", ["documents"], "one"), "documents", "g", batches, reader)
    member.avoid({0: [ASIDE]})
    return Loop(stage, member)


def values(bus: MemoryBus, topic: str) -> list[bytes | None]:
    return [record.value for record in bus.read(topic, 0, 0, 1 << 30)]


def test_a_stage_goes_on_after_what_it_does_not_need() -> None:
    bus = a_bus()
    bus.commit_offsets("g", {PLACE: ASIDE.start})
    loop = a_loop(bus, Passing())
    for _ in range(10):
        loop.step(0)
    assert values(bus, "out") == [document(offset).value for offset in range(ASIDE.stop, COUNT)]


def test_a_stage_that_needs_it_ends() -> None:
    bus = a_bus()
    bus.commit_offsets("g", {PLACE: ASIDE.start})
    loop = a_loop(bus, Copier())
    loop.step(0)  # The assignment.
    with pytest.raises(PartitionUnreadable):
        loop.step(0)


@pytest.mark.parametrize("begin", [3, 4])
def test_fingerprint_rejects_the_range_and_its_frames_tile(begin: int) -> None:
    bus = a_bus()
    bus.commit_offsets("g", {PLACE: begin})
    stage = fingerprint(aside=(SetAside(0, ASIDE.start, ASIDE.stop),))
    loop = a_loop(bus, stage)
    for _ in range(10):
        loop.step(0)
    frames = [decode(FingerprintFrame, value, LAYOUT) for value in values(bus, "app.fingerprints")]
    assert [(frame.start, frame.end) for frame in frames] == [(begin, 6), (6, COUNT)]
    assert len(values(bus, "rejected")) == ASIDE.stop - begin
    assert bus.join("g", ["documents"], "two").committed([PLACE]) == {PLACE: COUNT}
