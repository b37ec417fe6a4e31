"""What only the in-process log has: retention, a clock, continued offsets, misuse."""

import threading
import tracemalloc
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.brokers import Brokers
from tests.support.bus_seats import records_of
from worker.bus import Aborted, Bus, BusError, OffsetOutOfRange, Outgoing, TopicPartition
from worker.bus.memory.group import assign_ranges
from worker.bus.memory.member import MemoryMember
from worker.bus.memory.topics import murmur2, partition_for

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def value(n: int, topic: str = "t", partition: int | None = 0) -> Outgoing:
    """Give a record."""
    return Outgoing(topic, partition, None, str(n).encode())


def reader(bus: Brokers, group: str = "g", position: int = 0) -> MemoryMember:
    """Take the only seat of a group, and start all of ``t`` at a position."""
    member = bus.join(group, ["t"], "0")
    owned = member.poll(1, 1, 0).assignment or frozenset()
    for place in owned:
        member.seek(place, position)
    member.resume(owned)
    return member


@pytest.fixture
def bus() -> Brokers:
    """Give a log with a topic ``t`` of two partitions, whose clock stands at 7."""
    bus = Brokers(clock=lambda: 7)
    bus.create_topic("t", 2)
    return bus


def test_it_is_a_bus() -> None:
    bus: Bus = Brokers()
    assert bus.partitions(["t"]) == {"t": None}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_that_of_the_java_client(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected % 2**32
    assert partition_for(key, 1000) == (expected & 0x7FFFFFFF) % 1000


def test_records_without_a_key_take_turns(bus: Brokers) -> None:
    assert [bus.append(value(n, partition=None))[0].partition for n in range(4)] == [0, 1, 0, 1]


def test_the_clock_stamps(bus: Brokers) -> None:
    bus.create_topic("stamped", 1, log_append_time=True)
    for topic in ("t", "stamped"):
        bus.append_many([Outgoing(topic, 0, None, b"", (), at) for at in (None, 3, -1)])
    assert [r.timestamp for r in bus.read("t", 0, 0, 9)] == [7, 3, -1]
    assert [r.timestamp for r in bus.read("stamped", 0, 0, 9)] == [7, 7, 7]


def test_a_log_goes_on_where_an_earlier_one_ended(bus: Brokers) -> None:
    bus.create_topic("later", 2, first_offset=[10, 20], identity="the same as ever")
    assert [bus.append(value(0, "later", p))[1] for p in (0, 1)] == [10, 20]
    assert (bus.start_offset("later", 1), bus.end_offset("later", 1)) == (20, 21)
    assert bus.identity("later") == "the same as ever"
    with pytest.raises(OffsetOutOfRange, match=r"later\[0\]: offset 9 .* \[10, 11\)"):
        bus.read("later", 0, 9, 1)


def test_topics_are_checked(bus: Brokers) -> None:
    with pytest.raises(BusError, match="exists"):
        bus.create_topic("t", 2)
    with pytest.raises(ValueError, match="needs a partition"):
        bus.create_topic("none", 0)
    with pytest.raises(ValueError, match="1 first offsets for 2 partitions"):
        bus.create_topic("none", 2, first_offset=[1])
    with pytest.raises(BusError, match="does not exist"):
        bus.append(value(0, "missing"))
    with pytest.raises(BusError, match="does not exist"):
        bus.append(value(0, "missing", None))
    with pytest.raises(BusError, match="does not exist"):
        bus.identity("missing")
    with pytest.raises(BusError, match=r"t\[2\] does not exist: the topic has 2 partitions"):
        bus.append_many([value(0), value(0, partition=2)])
    assert bus.end_offset("t", 0) == 0
    with pytest.raises(BusError, match="g can't read missing"):
        bus.join("g", ["t", "missing"], "0")


@given(
    seats=st.dictionaries(st.text(max_size=3), st.sets(st.sampled_from("xyz"), min_size=1)),
    counts=st.fixed_dictionaries({t: st.integers(1, 9) for t in "xyz"}),
)
def test_ranges(seats: dict[str, set[str]], counts: dict[str, int]) -> None:
    """Every partition of a topic that somebody reads has one owner; runs are even."""
    assigned = assign_ranges(seats, counts.__getitem__)
    for topic in {t for topics in seats.values() for t in topics}:
        runs = [
            sorted(place.partition for place in assigned[instance] if place.topic == topic)
            for instance in sorted(seats)
            if topic in seats[instance]
        ]
        assert [p for run in runs for p in run] == list(range(counts[topic]))
        assert {len(run) for run in runs} <= {min(map(len, runs)), min(map(len, runs)) + 1}


def test_trim(bus: Brokers) -> None:
    bus.append_many(map(value, range(10)))
    for before in (3, 2, 4, 9):
        bus.trim("t", 0, before)
        start = bus.start_offset("t", 0)
        assert [r.offset for r in bus.read("t", 0, start, 99)] == list(range(start, 10))
    assert start == 9
    with pytest.raises(OffsetOutOfRange):
        bus.trim("t", 0, 11)
    open_one = bus.begin("p")
    open_one.append_many([value(10)])
    bus.append(value(11))
    with pytest.raises(OffsetOutOfRange):
        bus.trim("t", 0, 11)
    open_one.commit()
    bus.trim("t", 0, 13)
    assert bus.append(value(13))[1] == 13


def test_what_all_groups_have_passed_is_dropped() -> None:
    bus = Brokers(trim_consumed=True)
    bus.create_topic("t", 2)
    bus.commit_offsets("slow", {P0: 0})
    fast = reader(bus, "fast")
    bus.append_many(value(n, partition=n % 2) for n in range(20))
    assert len(records_of(fast.poll(99, 999, 0))) == 20
    fast.commit([], {P0: 10})
    assert bus.start_offset("t", 0) == 0
    bus.commit_offsets("slow", {P0: 4})
    assert (bus.start_offset("t", 0), bus.start_offset("t", 1)) == (4, 0)
    with pytest.raises(OffsetOutOfRange):
        reader(bus, "late").poll(99, 999, 0)


def test_a_log_is_dropped_as_far_as_all_offsets_of_it_have_passed() -> None:
    """Whatever partitions they are committed for."""
    bus = Brokers(trim_consumed=True)
    bus.create_topic("t", 1)
    bus.create_topic("owned", 2)
    owned = [TopicPartition("owned", number) for number in range(2)]
    bus.commit_offsets("g", dict.fromkeys(owned, 0), of="t")
    member = bus.join("g", ["owned"], "a", of="t")
    assert member.poll(1, 1, 0).assignment == frozenset(owned)
    bus.append_many(value(n) for n in range(10))
    member.commit([], {owned[0]: 8})
    assert bus.start_offset("t", 0) == 0
    member.commit([], {owned[1]: 5})
    assert bus.start_offset("t", 0) == 5
    bus.delete_topic("owned")
    bus.commit_offsets("other", {P0: 7})
    assert bus.start_offset("t", 0) == 7


@pytest.mark.slow
def test_memory_stays_flat() -> None:
    """Over a hundred thousand records, with a backlog that comes and goes."""
    bus = Brokers(trim_consumed=True, clock=lambda: 0)
    bus.create_topic("t", 1)
    bus.commit_offsets("g", {P0: 0})
    member = reader(bus)
    body = Outgoing("t", 0, None, b"x")
    tracemalloc.start()
    try:
        for round_ in range(50):
            bus.append_many([body] * 2_000)
            limit = 1_000 if round_ % 10 < 5 else 4_000
            (batch,) = member.poll(limit, 1 << 20, 0).batches
            member.commit([], {P0: batch.end})
        assert not member.poll(1, 1, 0).batches
        del batch
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
    assert bus.start_offset("t", 0) == bus.end_offset("t", 0) == 100_000


def test_partitions_take_turns(bus: Brokers) -> None:
    bus.append_many(value(n, partition=p) for n in range(4) for p in (0, 1))
    member = reader(bus)
    assert [records_of(member.poll(2, 99, 0))[0].partition for _ in range(4)] == [0, 1, 0, 1]


def test_out_of_range_takes_nothing(bus: Brokers) -> None:
    bus.append_many(value(n, partition=p) for n in range(4) for p in (0, 1))
    member = reader(bus)
    member.seek(P1, 5)
    for _ in range(2):
        with pytest.raises(OffsetOutOfRange):
            member.poll(9, 99, 0)
    member.seek(P1, 4)
    assert [r.offset for r in records_of(member.poll(9, 99, 0))] == [0, 1, 2, 3]


def test_a_seat_stays_reserved(bus: Brokers) -> None:
    """Until it is taken again, left for good, or evicted."""
    first, second = bus.join("g", ["t"], "1"), bus.join("g", ["t"], "2")
    second.close()
    assert first.poll(1, 1, 0).assignment == frozenset({P0})
    second.close(leave=True)
    assert first.poll(1, 1, 0).assignment == frozenset({P0, P1})
    with pytest.raises(BusError, match="group g has members"):
        bus.commit_offsets("g", {P0: 0})


def test_an_evicted_member_comes_back(bus: Brokers) -> None:
    first, second = bus.join("g", ["t"], "1"), bus.join("g", ["t"], "2")
    first.poll(1, 1, 0)
    second.poll(1, 1, 0)
    bus.evict("g", "2")
    assert len(first.poll(1, 1, 0).assignment or ()) == 2
    with pytest.raises(Aborted):
        second.commit([], {P1: 1})
    assert second.poll(1, 1, 0).assignment == frozenset({P1})
    assert first.poll(1, 1, 0).assignment == frozenset({P0})


def test_a_ghost_cannot_give_up_the_seat(bus: Brokers) -> None:
    ghost = bus.join("g", ["t"], "1")
    heir = bus.join("g", ["t"], "1")
    assert heir.poll(1, 1, 0).assignment
    ghost.close(leave=True)
    assert heir.poll(1, 1, 0).assignment is None


def test_misuse_is_refused(bus: Brokers) -> None:
    with closing(bus.join("g", ["t"], "1")) as member:
        with pytest.raises(ValueError, match=r"t\[0\] is not assigned to 1 of g"):
            member.seek(P0, 0)
        member.poll(1, 1, 0)
        with pytest.raises(ValueError, match=r"seek t\[0\] before you resume it"):
            member.resume([P0])
        with pytest.raises(ValueError, match=r"can't seek t\[0\] to -1"):
            member.seek(P0, -1)
        with pytest.raises(ValueError, match="at least 1"):
            member.poll(0, 1, 0)
        with pytest.raises(ValueError, match="not assigned"):
            member.commit([value(0)], {TopicPartition("u", 0): 1})
    with pytest.raises(RuntimeError, match="member 1 of g is closed"):
        member.poll(1, 1, 0)
    assert bus.end_offset("t", 0) == 0


def test_another_thread_is_refused(bus: Brokers) -> None:
    raised: list[BaseException] = []

    def use() -> None:
        try:
            bus.append(value(0))
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert "belong to the thread" in str(raised[0])
