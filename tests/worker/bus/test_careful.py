"""A member whose endangered partitions are read one at a time, beside the group."""

from __future__ import annotations

import pytest

from tests.support.bus_seats import records_of
from tests.support.notes import KeptNotes
from worker.bus import Offset, Outgoing, PartitionUnreadable, TopicPartition
from worker.bus.careful import CarefulMember, CarefulReader
from worker.bus.last_life import LastLife
from worker.bus.memory.bus import MemoryBus

MANY = 1 << 30
PLACES = [TopicPartition("documents", 0), TopicPartition("documents", 1)]


class Site:
    """A topic with two partitions, and a worker's lives."""

    def __init__(self) -> None:
        self.bus = MemoryBus()
        self.bus.create_topic("documents", 2)
        self.bus.commit_offsets("g", dict.fromkeys(PLACES, 0))
        self.notes = KeptNotes()
        self.now = 0.0

    def append(self, count: int) -> None:
        for place in PLACES:
            for number in range(count):
                self.bus.append(Outgoing(*place, None, b"%d" % number))

    def join(self, group: str = "g") -> CarefulMember:
        batches = LastLife("documents", "id", self.notes, 1, clock=lambda: self.now).batches
        batches.begin(group)
        reader = CarefulReader(
            group,
            batches,
            lambda: self.bus.log_reader(group, ["documents"], single=True),
            clock=lambda: self.now,
        )
        member = self.bus.join(group, ["documents"], "one")
        return CarefulMember(member, "documents", group, batches, reader, clock=lambda: self.now)

    def sit(self, member: CarefulMember, *offsets: int) -> None:
        """Take the seat, and read from these offsets on."""
        assert member.poll(1, 1, 0.0).assignment is not None
        for place, offset in zip(PLACES, offsets, strict=True):
            member.seek(place, offset)
        member.resume(PLACES)

    def sit_again(self, member: CarefulMember) -> None:
        """Rebalance the group: a second member comes and goes."""
        self.bus.join("g", ["documents"], "two").close(leave=True)
        while member.poll(1, 1, 0.0).assignment != frozenset(PLACES):
            pass
        for place, offset in member.committed(PLACES).items():
            member.seek(place, 4 if offset is None else max(offset, 4))
        member.resume(PLACES)

    def dies(self) -> None:
        """End a life without a word."""
        member = self.join()
        self.sit(member, 0, 0)


def polled(member: CarefulMember, limit: int = 100) -> list[tuple[int, int]]:
    return [(one.partition, one.offset) for one in records_of(member.poll(limit, MANY, 0.0))]


@pytest.fixture
def site() -> Site:
    return Site()


def test_without_a_death_the_member_reads_all_at_once(site: Site) -> None:
    site.append(3)
    member = site.join()
    site.sit(member, 0, 0)
    assert sorted(polled(member)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_after_a_death_partitions_are_read_one_after_the_other_then_by_the_member(
    site: Site,
) -> None:
    site.append(3)
    site.dies()
    member = site.join()
    site.sit(member, 0, 0)
    assert polled(member, 2) == [(0, 0), (0, 1)]
    assert member.positions()[PLACES[0]] == 2
    assert polled(member) == [(0, 2)]
    assert polled(member) == [(1, 0), (1, 1), (1, 2)]
    site.append(1)
    assert sorted(polled(member)) == [(0, 3), (1, 3)]
    assert member.positions() == dict.fromkeys(PLACES, 4)
    site.append(1)
    site.sit_again(member)
    assert sorted(polled(member)) == [(0, 4), (1, 4)], "what was assigned anew is in no danger"


def test_a_range_that_is_set_aside_is_not_fetched(site: Site) -> None:
    site.append(10)
    member = site.join()
    member.avoid({0: [range(8)]})
    site.sit(member, 0, 0)
    assert polled(member) == [(1, offset) for offset in range(10)]
    with pytest.raises(PartitionUnreadable) as raised:
        polled(member)
    assert (raised.value.partition, raised.value.position) == (PLACES[0], 0)
    assert polled(member) == []
    member.seek(PLACES[0], 8)
    member.resume(PLACES[:1])
    assert polled(member) == [(0, 8), (0, 9)]


def test_a_partition_that_is_paused_keeps_its_turn_for_a_while(site: Site) -> None:
    site.append(3)
    site.dies()
    member = site.join()
    site.sit(member, 0, 0)
    assert polled(member, 1) == [(0, 0)]
    member.pause(PLACES[:1])
    assert polled(member) == []
    member.resume(PLACES[:1])
    assert polled(member, 1) == [(0, 1)]
    member.pause(PLACES[:1])
    site.now += 6
    assert polled(member) == [(1, 0), (1, 1), (1, 2)]
    member.resume(PLACES[:1])
    assert polled(member) == [(0, 2)]


def test_a_batch_that_the_worker_died_of_twice_is_refused(site: Site) -> None:
    site.append(3)
    site.dies()
    for _ in range(2):
        member = site.join()
        site.sit(member, 0, 0)
        assert polled(member, 1) == [(0, 0)]
    member = site.join()
    site.sit(member, 1, 0)
    with pytest.raises(PartitionUnreadable, match=r"documents\[0\] .*offset 1: .*died twice") as it:
        polled(member)
    assert it.value.whole


def test_no_batch_is_blamed_for_what_was_fetched_before_partitions_were_paused(site: Site) -> None:
    site.append(3)
    batches = LastLife("documents", "id", site.notes, 1, clock=lambda: site.now).batches
    reader = CarefulReader(
        "g",
        batches,
        lambda: site.bus.log_reader("g", ["documents"], single=True),
        settle_seconds=1.0,
        clock=lambda: site.now,
    )
    reader.start(PLACES[0], 0)
    assert not reader.read(100, MANY, 0.0)
    assert batches.alone("another", 0, 0)
    batches.rest("another")
    site.now += 1
    assert [one.offset for one in reader.read(100, MANY, 0.0)] == [0, 1, 2]


def test_after_a_whole_turn_the_member_goes_on(site: Site) -> None:
    site.append(4)
    site.dies()
    member = site.join()
    site.sit(member, 0, 0)
    assert polled(member, 1) == [(0, 0)]
    site.now += 3
    assert polled(member, 3) == [(0, 1), (0, 2), (0, 3)]
    site.append(2)
    for _ in range(4):
        polled(member)
    assert member.positions() == dict.fromkeys(PLACES, 6)


def test_a_state_goes_with_the_offset_that_is_committed(site: Site) -> None:
    site.append(3)
    member = site.join()
    site.sit(member, 0, 0)
    member.commit([], {PLACES[0]: Offset(2, "sealed")})
    assert member.committed(PLACES) == {PLACES[0]: Offset(2, "sealed"), PLACES[1]: 0}
