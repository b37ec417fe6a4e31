"""A log that lost its end and grew again: other records have the offsets that were read."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from _pytest.mark import ParameterSet

from tests.support.bus_harness import Harness, MemoryHarness
from tests.support.bus_seats import Seat, until
from tests.support.clusters import ClusterFactory
from tests.support.kafka_harness import KafkaHarness
from worker.bus import Claim, LogReader, LogTruncated, Outgoing, Record, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions
from worker.bus.shared import SharedMember, SharedReader

Cut = Callable[[TopicPartition, int], None]
WRITTEN, CUT, READ = 20, 12, 16


def more(offset: int) -> ParameterSet:
    """Return an offset that shows little more than another does."""
    return pytest.param(offset, marks=pytest.mark.slow(ci=False))


@pytest.fixture(
    params=[
        "memory",
        pytest.param("classic", marks=[pytest.mark.kafka, pytest.mark.slow]),
        pytest.param("consumer", marks=[pytest.mark.kafka, pytest.mark.slow(ci=False)]),
    ]
)
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    """Yield a bus whose logs `cut` can cut off; on Kafka, its broker is killed for that."""
    if request.param == "memory":
        memory = MemoryHarness()
        memory.lose = lambda place, offset: memory.memory.cut(*place, offset)
        harness: Harness = memory
    else:
        clusters: ClusterFactory = request.getfixturevalue("kafka_cluster")
        cluster = clusters(1)

        def lose(place: TopicPartition, offset: int) -> None:
            cluster.kill(1)
            assert cluster.lose_end(1, *place, offset) == offset
            cluster.start(1)
            on_kafka.renew_producer()

        options = KafkaOptions(cluster.bootstrap, protocol=request.param)
        harness = on_kafka = KafkaHarness(cluster.bootstrap, KafkaBus(options), "cut")
        harness.lose = lose
    yield harness
    harness.close()


def write(harness: Harness, topic: str, count: int, what: str) -> None:
    """Write numbered records, each in a batch of its own."""
    for number in range(count):
        harness.append(Outgoing(topic, 0, None, f"{what}-{number}".encode()))


def has_read(reader: LogReader, read: list[Record], count: int) -> bool:
    """Read once more; tell whether that is all."""
    read.extend(reader.read(100, 1 << 20, 0.05))
    return len(read) == count


def lost(seat: Seat) -> LogTruncated:
    """Poll until the member says that its log was cut off."""
    with pytest.raises(LogTruncated) as raised:
        until(lambda: seat.poll() and False, "the poll to say so")
    return raised.value


def test_a_member_that_reads_on_says_so_at_once(harness: Harness) -> None:
    topic = harness.topic()
    (place,) = harness.places(topic)
    write(harness, topic, WRITTEN, "old")
    seat = harness.alone(topic)
    seat.start()
    seat.collect(WRITTEN)
    seat.member.commit([], {place: WRITTEN})
    harness.lose(place, CUT)
    write(harness, topic, WRITTEN, "new")
    error = lost(seat)
    assert (error.partition, error.end) == (place, CUT)
    assert error.claim.offset == WRITTEN
    assert f"{topic}[0]" in str(error)
    assert "offset 12" in str(error)
    assert all(value is not None and value.startswith(b"old") for value in seat.values)


def test_whoever_comes_later_compares_what_was_committed(harness: Harness) -> None:
    topic, group = harness.topic(), harness.name("group")
    (place,) = harness.places(topic)
    write(harness, topic, WRITTEN, "old")
    seat = harness.alone(topic, group=group)
    seat.start()
    seat.collect(WRITTEN)
    seat.member.commit([], {place: READ})
    seat.member.committed([place])  # The markers are written.
    seat.member.close(leave=True)
    harness.lose(place, CUT)
    write(harness, topic, WRITTEN, "new")

    later = harness.alone(topic, group=group)
    later.rewind()
    assert later.member.claims()[place].offset == READ
    error = lost(later)
    assert (error.partition, error.claim, error.end) == (place, later.member.claims()[place], CUT)
    assert later.records == []


def test_what_nobody_has_read_may_be_lost(harness: Harness) -> None:
    """The cut is after the committed offset, and so are all records of the later leader."""
    topic, group = harness.topic(), harness.name("group")
    (place,) = harness.places(topic)
    write(harness, topic, WRITTEN, "old")
    seat = harness.alone(topic, group=group)
    seat.start()
    seat.collect(WRITTEN)
    seat.member.commit([], {place: CUT})
    seat.member.committed([place])  # The markers are written.
    seat.member.close(leave=True)
    harness.lose(place, CUT)
    write(harness, topic, 3, "new")

    later = harness.alone(topic, group=group)
    later.rewind()
    earlier = later.member.claims()[place]
    later.collect(3)
    later.member.commit([], {place: CUT + 3})
    later.rewind()
    found = later.member.claims()[place]
    assert found.offset == CUT + 3
    assert found.epoch > earlier.epoch
    write(harness, topic, 1, "more")
    assert later.collect(4)[-1].value == b"more-0"


def test_markers_of_a_later_leader_are_no_loss(harness: Harness) -> None:
    """A position moves past aborted records and markers that were written in a later epoch."""
    topic, group = harness.topic(), harness.name("group")
    (place,) = harness.places(topic)
    write(harness, topic, CUT, "old")
    harness.lose(place, CUT - 1)
    opened = harness.open_transaction()
    opened.append(Outgoing(topic, 0, None, b"aborted"))
    opened.abort()
    seat = harness.alone(topic, group=group)
    seat.start()
    seat.collect(CUT - 1)
    until(lambda: seat.poll() and seat.member.positions()[place] == CUT + 1, "the marker")
    seat.member.commit([], {place: CUT + 1})
    seat.rewind()
    write(harness, topic, 1, "more")
    until(lambda: seat.poll() and len(seat.records) == CUT, "what comes after the marker")
    assert seat.records[-1].value == b"more-0"


@pytest.mark.parametrize("start", [more(0), CUT, more(READ)])
def test_a_seat_compares_the_log_with_what_its_group_has_committed(
    harness: Harness, start: int
) -> None:
    """Wherever its own state has it read on; the epoch that is committed is the other log's."""
    seats, log, group = harness.topic(), harness.topic(), harness.name("group")
    (seat,), (place,) = harness.places(seats), harness.places(log)
    write(harness, log, WRITTEN, "old")

    def connect() -> SharedMember:
        joined = harness.join(group, [seats], "alone", of=log)
        reader = SharedReader(place, lambda: harness.bus.log_reader(group, [log]))
        return SharedMember(joined.member, reader)

    first = Seat(connect())
    until(lambda: first.poll().assignment, "the seat")
    first.start()
    first.collect(WRITTEN)
    first.member.commit([], {seat: READ})
    first.member.committed([seat])  # The markers are written.
    first.member.close(leave=True)
    harness.lose(place, CUT)
    write(harness, log, WRITTEN, "new")

    with closing(connect()) as member:
        later = Seat(member)
        until(lambda: later.poll().assignment, "the seat")
        assert member.committed([seat]) == {seat: READ}
        later.start(start)
        error = lost(later)
        assert error.partition == place
        assert error.claim == member.claims()[seat]


@pytest.mark.parametrize("harness", ["memory"], indirect=True)
def test_a_seat_that_was_paused_meanwhile_says_so(harness: Harness) -> None:
    seats, log = harness.topic(), harness.topic()
    (seat,), (place,) = harness.places(seats), harness.places(log)
    write(harness, log, WRITTEN, "old")
    group = harness.name("group")
    joined = harness.join(group, [seats], "alone", of=log)
    reader = SharedReader(place, lambda: harness.bus.log_reader(group, [log]))
    paused = Seat(SharedMember(joined.member, reader))
    until(lambda: paused.poll().assignment, "the seat")
    paused.start()
    paused.collect(WRITTEN)
    paused.member.pause([seat])
    harness.lose(place, CUT)
    write(harness, log, WRITTEN, "new")
    paused.member.resume([seat])
    assert lost(paused).claim.offset == WRITTEN
    assert len(paused.records) == WRITTEN


@pytest.mark.parametrize("harness", ["memory"], indirect=True)
def test_a_partition_that_was_paused_meanwhile_says_so(harness: Harness) -> None:
    topic = harness.topic()
    (place,) = harness.places(topic)
    write(harness, topic, WRITTEN, "old")
    seat = harness.alone(topic)
    seat.start()
    seat.collect(WRITTEN)
    seat.member.pause([place])
    harness.lose(place, CUT)
    write(harness, topic, WRITTEN, "new")
    seat.member.resume([place])
    assert lost(seat).claim.offset == WRITTEN
    assert len(seat.records) == WRITTEN


@pytest.mark.parametrize("behind", [more(0), 2, more(WRITTEN - CUT)])
def test_a_reader_compares_what_it_is_told_with_the_log(harness: Harness, behind: int) -> None:
    """It may begin before that; and it goes on where the log was cut off, if it is told to."""
    topic = harness.topic()
    (place,) = harness.places(topic)
    write(harness, topic, WRITTEN, "old")
    with closing(harness.bus.log_reader(harness.name("group"), [topic])) as reader:
        reader.start(place, 0)
        read: list[Record] = []
        until(lambda: has_read(reader, read, WRITTEN), "all of the log")
        epoch = reader.epoch(place)
        assert epoch is not None
        assert {record.leader_epoch for record in read} == {epoch}
        reader.stop(place)
        assert reader.epoch(place) is None
        harness.lose(place, CUT)
        write(harness, topic, WRITTEN, "new")
        claim = Claim(WRITTEN, epoch)
        reader.start(place, WRITTEN - behind, claim)
        for _ in range(2):
            with pytest.raises(LogTruncated) as raised:
                until(lambda: reader.read(100, 1 << 20, 0.05) and False, "the reader to say so")
            assert (raised.value.partition, raised.value.claim) == (place, claim)
        assert raised.value.end in {CUT, WRITTEN - behind}
        reader.start(place, CUT)
        read.clear()
        until(lambda: has_read(reader, read, WRITTEN), "all of the log")
        assert read[0].offset == CUT
        assert min(record.leader_epoch for record in read) > epoch


def test_who_reads_anew_what_earlier_leaders_wrote_commits_no_earlier_epoch(
    harness: Harness,
) -> None:
    """A shard's own state is often far behind what its group has committed."""
    seats, log, group = harness.topic(), harness.topic(), harness.name("group")
    (seat,), (place,) = harness.places(seats), harness.places(log)
    write(harness, log, WRITTEN, "old")
    harness.lose(place, CUT)
    write(harness, log, WRITTEN, "new")

    def join() -> Seat:
        joined = harness.join(group, [seats], "alone", of=log)
        reader = SharedReader(place, lambda: harness.bus.log_reader(group, [log]))
        one = Seat(SharedMember(joined.member, reader))
        until(lambda: one.poll().assignment, "the seat")
        return one

    first = join()
    first.start()
    first.collect(CUT + WRITTEN)
    first.member.commit([], {seat: CUT + WRITTEN})
    first.member.committed([seat])
    (before,) = first.member.claims().values()
    first.member.close(leave=True)

    later = join()
    assert later.member.committed([seat]) == {seat: CUT + WRITTEN}
    later.start()
    until(lambda: later.poll(1) and later.records, "a record of the first leader")
    assert later.records[0].leader_epoch < before.epoch
    later.member.commit([], {seat: CUT + WRITTEN})
    later.member.committed([seat])
    assert later.member.claims() == {seat: before}
    later.member.close(leave=True)
