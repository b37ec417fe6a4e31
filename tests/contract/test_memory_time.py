"""What time does to the in-process log: retention by segments, and offsets that expire."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.support.brokers import Brokers, GroupProtocol, Retention
from worker.bus import BusError, Outgoing, TopicPartition

HOUR = 3_600_000
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


@dataclass
class Clock:
    """A clock (ms) that a test sets."""

    now: int = 1_000 * HOUR

    def __call__(self) -> int:
        return self.now

    def pass_hours(self, hours: float) -> None:
        self.now += round(hours * HOUR)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bus(clock: Clock) -> Brokers:
    """Give a log that keeps ``t`` for ten hours, in segments of two, and offsets for a day."""
    bus = Brokers(clock=clock, offsets_retention_ms=24 * HOUR)
    bus.create_topic("t", 2)
    bus.retain("t", Retention(10 * HOUR, segment_ms=2 * HOUR))
    return bus


def write(bus: Brokers, *timestamps: int | None, partition: int = 0) -> None:
    """Write one batch."""
    bus.append_many(Outgoing("t", partition, None, b"", (), at) for at in timestamps)


def in_transaction(bus: Brokers, *timestamps: int | None, commit: bool = True) -> None:
    transaction = bus.begin("writer")
    transaction.append_many(Outgoing("t", 0, None, b"", (), at) for at in timestamps)
    if commit:
        transaction.commit()
    else:
        transaction.abort()


def kept(bus: Brokers) -> tuple[int, int]:
    """Give the log's range after the brokers have looked."""
    bus.pass_time()
    return bus.start_offset("t", 0), bus.end_offset("t", 0)


def test_segments_are_deleted_whole_and_the_oldest_first(bus: Brokers, clock: Clock) -> None:
    for _ in range(4):  # The third is more than two hours after the first.
        write(bus, None)
        clock.pass_hours(1.5)
    clock.pass_hours(4)  # The first is ten hours old, the second eight and a half.
    assert kept(bus) == (0, 4)
    clock.pass_hours(1.5)  # Not *more* than ten hours.
    assert kept(bus) == (0, 4)
    clock.now += 1
    assert kept(bus) == (2, 4)
    assert [r.offset for r in bus.read("t", 0, 2, 9)] == [2, 3]


def test_only_a_write_begins_a_segment(bus: Brokers, clock: Clock) -> None:
    write(bus, None)
    clock.pass_hours(1.9)
    write(bus, None)
    clock.pass_hours(9)
    assert kept(bus) == (0, 2)


def test_an_idle_log_ends_up_empty_behind_its_last_marker(bus: Brokers, clock: Clock) -> None:
    in_transaction(bus, None, None)
    clock.pass_hours(10.1)
    assert kept(bus) == (3, 3)
    write(bus, None)
    assert [r.offset for r in bus.read("t", 0, 3, 9)] == [3]
    assert kept(bus) == (3, 4)


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_has_a_time_of_its_own(bus: Brokers, clock: Clock, *, commit: bool) -> None:
    """So what was written with an older time in a transaction lives as long as its marker."""
    in_transaction(bus, clock() - 2 * HOUR, commit=commit)
    clock.pass_hours(9)
    assert kept(bus) == (0, 2)
    clock.pass_hours(1.1)
    assert kept(bus) == (2, 2)


def test_a_marker_may_begin_a_segment(bus: Brokers, clock: Clock) -> None:
    in_transaction(bus, clock() - 100 * HOUR)
    assert kept(bus) == (1, 2)
    clock.pass_hours(10.1)
    assert kept(bus) == (2, 2)


def test_old_timestamps_are_deleted_at_once_and_future_ones_stay(
    bus: Brokers, clock: Clock
) -> None:
    write(bus, clock() - 11 * HOUR, clock() - 12 * HOUR)
    assert kept(bus) == (2, 2)
    write(bus, clock() + 100 * HOUR)
    clock.pass_hours(50)
    write(bus, None)  # Old beside the first of its segment, which begins no other.
    clock.pass_hours(50)
    assert kept(bus) == (2, 4)


def test_records_without_a_time_have_that_of_their_writing(bus: Brokers, clock: Clock) -> None:
    write(bus, -1)
    clock.pass_hours(9)
    assert kept(bus) == (0, 1)
    clock.pass_hours(1.1)
    assert kept(bus) == (1, 1)


def test_what_is_open_is_not_deleted(bus: Brokers, clock: Clock) -> None:
    write(bus, None)
    clock.pass_hours(3)
    transaction = bus.begin("writer")
    transaction.append_many([Outgoing("t", 0, None, b"")])
    clock.pass_hours(30)
    assert kept(bus) == (1, 2)
    transaction.commit()
    assert kept(bus) == (2, 3)  # Its marker, which is new, has begun a segment.


def test_trimmed_segments_are_deleted_whatever_their_age(bus: Brokers, clock: Clock) -> None:
    write(bus, clock() + 100 * HOUR)
    clock.pass_hours(3)
    write(bus, clock() + 103 * HOUR)
    write(bus, clock() + 200 * HOUR)
    bus.trim("t", 0, 2)
    assert kept(bus) == (2, 3)
    clock.pass_hours(211)
    assert kept(bus) == (3, 3)


def test_retention_can_be_set_and_lifted(bus: Brokers, clock: Clock) -> None:
    bus.create_topic("later", 1)
    for _ in range(2):
        bus.append(Outgoing("later", 0, None, b""))
        clock.pass_hours(5)
    bus.pass_time()
    assert bus.start_offset("later", 0) == 0
    bus.retain("later", Retention(6 * HOUR))
    bus.pass_time()
    assert bus.start_offset("later", 0) == 0  # One segment, of which the last is five hours old.
    bus.retain("later", None)
    clock.pass_hours(5)
    bus.pass_time()
    assert bus.start_offset("later", 0) == 0
    bus.retain("later", Retention(6 * HOUR))
    bus.pass_time()
    assert bus.start_offset("later", 0) == 2
    with pytest.raises(BusError, match="does not exist"):
        bus.retain("missing", None)


Make = Callable[[GroupProtocol], Brokers]


@pytest.fixture
def grouped(clock: Clock) -> Make:
    """Give a factory of logs in which group ``g`` has committed an offset in two partitions."""

    def make(protocol: GroupProtocol) -> Brokers:
        bus = Brokers(clock=clock, offsets_retention_ms=24 * HOUR, group_protocol=protocol)
        bus.create_topic("t", 2)
        bus.commit_offsets("g", {P0: 0, P1: 0})
        return bus

    return make


def left(bus: Brokers) -> set[TopicPartition]:
    """Name the partitions whose offsets are there after the brokers have looked."""
    bus.pass_time()
    return set(bus.committed("g"))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_that_nobody_reads_from_expire(
    grouped: Make, clock: Clock, protocol: GroupProtocol
) -> None:
    bus = grouped(protocol)
    clock.now += 24 * HOUR - 1
    assert left(bus) == {P0, P1}
    clock.now += 1
    assert left(bus) == set()
    assert bus.committed("g", [P0]) == {P0: None}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_stay_as_long_as_somebody_has_a_seat(
    grouped: Make, clock: Clock, protocol: GroupProtocol
) -> None:
    bus = grouped(protocol)
    member = bus.join("g", ["t"], "1")
    member.close()  # The seat stays.
    clock.pass_hours(1_000)
    assert left(bus) == {P0, P1}


@pytest.mark.parametrize(("protocol", "expected"), [("classic", {P0, P1}), ("consumer", {P1})])
def test_the_protocols_count_from_other_times(
    grouped: Make, clock: Clock, protocol: GroupProtocol, expected: set[TopicPartition]
) -> None:
    """Classic: since the group is empty. KIP-848: since the commit, so what is idle goes first."""
    bus = grouped(protocol)
    member = bus.join("g", ["t"], "1")
    member.poll(1, 1, 0)
    clock.pass_hours(30)
    member.commit([], {P1: 0})
    member.close(leave=True)
    assert left(bus) == expected
    clock.pass_hours(24)
    assert left(bus) == set()


def test_offsets_in_an_open_transaction_do_not_expire(grouped: Make, clock: Clock) -> None:
    bus = grouped("classic")
    transaction = bus.begin("p")
    transaction.commit_offsets("g", {P0: 1})
    clock.pass_hours(25)
    assert left(bus) == {P0}
    transaction.commit()
    assert left(bus) == {P0}  # Committed anew, just now.
    clock.pass_hours(25)
    assert left(bus) == set()


def test_nothing_expires_unless_asked(clock: Clock) -> None:
    bus = Brokers(clock=clock)
    bus.create_topic("t", 2)
    bus.commit_offsets("g", {P0: 0})
    write(bus, None)
    clock.pass_hours(100_000)
    assert (left(bus), kept(bus)) == ({P0}, (0, 1))
