"""Reading beside a group: committed records from where one says, and how far the group is."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from time import monotonic

import pytest

from tests.contract.conftest import MEMORY_FIRST
from tests.support.bus_harness import Harness
from tests.support.bus_seats import until
from worker.bus import LogReader, OffsetOutOfRange, Outgoing, Record, TopicPartition

MB = 1 << 20


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def beside(harness: Harness, group: str, closing: ExitStack, *topics: str) -> LogReader:
    reader = harness.bus.log_reader(group, topics)
    closing.callback(reader.close)
    return reader


def collect(reader: LogReader, count: int) -> list[Record]:
    records: list[Record] = []

    def enough() -> bool:
        records.extend(reader.read(100, MB, 0.1))
        return len(records) >= count

    until(enough, f"{count} records")
    return records


def numbered(topic: str, count: int, partition: int = 0) -> list[Outgoing]:
    return [Outgoing(topic, partition, None, b"%d" % number) for number in range(count)]


def test_each_partition_is_read_from_where_it_was_started(
    harness: Harness, closing: ExitStack
) -> None:
    topic = harness.topic(3)
    for partition in range(3):
        harness.append(*numbered(topic, 5, partition))
    reader = beside(harness, harness.name("group"), closing, topic)
    reader.start(TopicPartition(topic, 0), 3)
    reader.start(TopicPartition(topic, 2), 4)
    read = collect(reader, 3)
    assert sorted((r.partition, r.offset, r.value) for r in read) == [
        (0, 3, b"3"),
        (0, 4, b"4"),
        (2, 4, b"4"),
    ]
    reader.start(TopicPartition(topic, 0), 1)
    assert [r.offset for r in collect(reader, 4)] == [1, 2, 3, 4]


def test_a_read_takes_what_is_there_and_waits_for_no_more(
    harness: Harness, closing: ExitStack
) -> None:
    topic = harness.topic()
    (place,) = harness.places(topic)
    harness.append(*numbered(topic, 5))
    reader = beside(harness, harness.name("group"), closing, topic)
    reader.start(place, 0)
    began = monotonic()
    read = list(reader.read(100, MB, 60))
    while len(read) < 5:
        read += reader.read(100, MB, 60)
    assert monotonic() - began < 50
    assert [record.offset for record in read] == list(range(5))


def test_a_read_is_bounded_in_records_and_in_bytes(harness: Harness, closing: ExitStack) -> None:
    topic = harness.topic()
    (place,) = harness.places(topic)
    harness.append(*(Outgoing(topic, 0, b"k" * 100, b"v" * 900) for _ in range(40)))
    reader = beside(harness, harness.name("group"), closing, topic)
    reader.start(place, 0)
    bursts: list[Sequence[Record]] = []

    def all_read(limit: int, max_bytes: int, end: int) -> bool:
        if found := reader.read(limit, max_bytes, 0.1):
            bursts.append(found)
        return bool(bursts) and bursts[-1][-1].offset == end - 1

    until(lambda: all_read(3, MB, 30), "thirty records")
    assert max(len(found) for found in bursts) == 3
    bursts.clear()
    until(lambda: all_read(100, 2_500, 40), "the others")
    assert max(len(found) for found in bursts) == 3
    assert [r.offset for found in bursts for r in found] == list(range(30, 40))


def test_what_is_stopped_delivers_nothing(harness: Harness, closing: ExitStack) -> None:
    topic = harness.topic(2)
    reader = beside(harness, harness.name("group"), closing, topic)
    for partition in range(2):
        reader.start(TopicPartition(topic, partition), 0)
    reader.stop(TopicPartition(topic, 0))
    harness.append(*numbered(topic, 2, 0))
    harness.append(*numbered(topic, 2, 1))
    assert {r.partition for r in collect(reader, 2)} == {1}
    assert not reader.read(100, MB, 0.5)


def test_only_what_is_committed_is_read(harness: Harness, closing: ExitStack) -> None:
    topic = harness.topic()
    aborted, kept = harness.open_transaction(), harness.open_transaction()
    aborted.append(Outgoing(topic, 0, None, b"aborted"))
    kept.append(Outgoing(topic, 0, None, b"kept"))
    reader = beside(harness, harness.name("group"), closing, topic)
    reader.start(TopicPartition(topic, 0), 0)
    assert not reader.read(100, MB, 0.5)
    aborted.abort()
    kept.commit()
    assert [r.value for r in collect(reader, 1)] == [b"kept"]


def test_it_sees_how_far_the_group_is_and_disturbs_nobody(
    harness: Harness, closing: ExitStack
) -> None:
    topic = harness.topic(2)
    harness.append(*numbered(topic, 4))
    group = harness.name("group")
    first, second = sorted(harness.places(topic))
    reader = beside(harness, group, closing, topic)
    assert reader.committed([first, second]) == {first: None, second: None}
    seat = harness.alone(topic, group=group)
    seat.start()
    seat.collect(4)
    reader.start(first, 0)
    collect(reader, 4)
    seat.member.commit([], {first: 3})
    until(lambda: reader.committed([first, second]) == {first: 3, second: None}, "offset 3")
    assert reader.watermarks(first)[0] == 0
    assert seat.poll().assignment is None


def test_a_position_that_is_gone_is_said_to_be(harness: Harness, closing: ExitStack) -> None:
    topic = harness.topic()
    harness.append(*numbered(topic, 5))
    place = TopicPartition(topic, 0)
    harness.trim(place, 3)
    reader = beside(harness, harness.name("group"), closing, topic)
    reader.start(place, 1)
    with pytest.raises(OffsetOutOfRange) as raised:
        until(lambda: reader.read(10, MB, 0.1) and False, "OffsetOutOfRange")
    assert (raised.value.partition, raised.value.low) == (place, 3)
    reader.start(place, 3)
    assert [r.offset for r in collect(reader, 2)] == [3, 4]


def outcome(reader: LogReader) -> Sequence[Record] | OffsetOutOfRange:
    """Read until anything comes: records, or that a position is gone."""
    came: list[Sequence[Record] | OffsetOutOfRange] = []

    def something() -> bool:
        try:
            if records := reader.read(100, MB, 0.1):
                came.append(records)
        except OffsetOutOfRange as error:
            came.append(error)
        return bool(came)

    until(something, "records, or an error")
    return came[0]


def test_what_is_gone_of_some_partitions_costs_the_others_nothing(
    harness: Harness, closing: ExitStack
) -> None:
    topic = harness.topic(4)
    places = sorted(harness.places(topic))
    for partition in range(4):
        harness.append(*numbered(topic, 200, partition))
    for gone in (1, 3):
        harness.trim(places[gone], 150)
    reader = beside(harness, harness.name("group"), closing, topic)
    for place in places:
        reader.start(place, 0)
    read: list[Record] = []
    refused: list[OffsetOutOfRange] = []

    def all_there() -> bool:
        found = outcome(reader)
        if isinstance(found, OffsetOutOfRange):
            refused.append(found)
            reader.start(found.partition, found.low)
        else:
            read.extend(found)
        return len(read) >= 500

    until(all_there, "what is left of four partitions")
    assert sorted((e.partition, e.position, e.low) for e in refused) == [
        (places[1], 0, 150),
        (places[3], 0, 150),
    ]
    for place in places:
        low = 150 if place.partition in {1, 3} else 0
        assert [r.offset for r in read if r.partition == place.partition] == list(range(low, 200))


def test_a_position_that_is_gone_is_said_again_until_it_is_another(
    harness: Harness, closing: ExitStack
) -> None:
    topic = harness.topic(2)
    places = sorted(harness.places(topic))
    for partition in range(2):
        harness.append(*numbered(topic, 5, partition))
        harness.trim(places[partition], 3)
    reader = beside(harness, harness.name("group"), closing, topic)
    for place in places:
        reader.start(place, 1)
    first = outcome(reader)
    assert isinstance(first, OffsetOutOfRange)
    again = outcome(reader)
    assert isinstance(again, OffsetOutOfRange)
    assert again.partition == first.partition
    reader.stop(first.partition)
    second = outcome(reader)
    assert isinstance(second, OffsetOutOfRange)
    assert {first.partition, second.partition} == set(places)
    reader.start(second.partition, 3)
    assert [r.offset for r in collect(reader, 2)] == [3, 4]


def test_nothing_of_before_a_new_start_comes_after_it(harness: Harness, closing: ExitStack) -> None:
    topic = harness.topic(1)
    (place,) = harness.places(topic)
    harness.append(*numbered(topic, 300))
    reader = beside(harness, harness.name("group"), closing, topic)

    def some() -> list[int]:
        read: list[Record] = []

        def came() -> bool:
            read.extend(reader.read(3, MB, 0.1))
            return bool(read)

        until(came, "records")
        return [record.offset for record in read]

    # Each time, more has been fetched than is handed out when it is started elsewhere.
    for start in (0, 250, 40, 200, 10):
        reader.start(place, start)
        read = some() + some()
        assert read == list(range(start, start + len(read)))


def drained(reader: LogReader, place: TopicPartition) -> list[int]:
    """Read until the position is where the committed records end; give the offsets."""
    offsets: list[int] = []

    def at_end() -> bool:
        offsets.extend(record.offset for record in reader.read(100, MB, 0.1))
        return reader.position(place) == reader.end(place)

    until(at_end, "the end")
    return offsets


def test_a_position_follows_what_is_read(harness: Harness, closing: ExitStack) -> None:
    topic = harness.topic(2)
    place, other = sorted(harness.places(topic))
    harness.append(*numbered(topic, 9))
    reader = beside(harness, harness.name("group"), closing, topic)
    assert reader.position(place) is None
    reader.start(place, 2)
    assert reader.position(place) == 2
    read: list[Record] = []

    def came() -> bool:
        read.extend(reader.read(3, MB, 0.1))
        return bool(read)

    until(came, "records")
    assert reader.position(place) == read[-1].offset + 1
    assert drained(reader, place) == list(range(read[-1].offset + 1, 9))
    assert reader.position(place) == 9
    # Each start is where it is said to be, whatever was read before.
    for start in (0, 4, 0, 1):
        reader.start(place, start)
        assert reader.position(place) == start
        assert drained(reader, place) == list(range(start, 9))
    reader.stop(place)
    assert reader.position(place) is None
    reader.start(place, 1)
    assert reader.position(place) == 1
    assert reader.position(other) is None


def test_a_position_passes_what_is_never_delivered(harness: Harness, closing: ExitStack) -> None:
    topic = harness.topic()
    (place,) = harness.places(topic)
    committed, aborted = harness.open_transaction(), harness.open_transaction()
    committed.append(Outgoing(topic, 0, None, b"0"))
    committed.commit()
    aborted.append(Outgoing(topic, 0, None, b"2"), Outgoing(topic, 0, None, b"3"))
    aborted.abort()
    reader = beside(harness, harness.name("group"), closing, topic)
    reader.start(place, 0)
    assert drained(reader, place) == [0]
    until(lambda: not reader.read(9, MB, 0.1) and reader.position(place) == 5, "position 5")
    # Nothing but a marker is left from here.
    reader.start(place, 4)
    assert drained(reader, place) == []


@pytest.mark.parametrize("harness", MEMORY_FIRST, indirect=True)
def test_an_end_is_that_of_committed_records(harness: Harness, closing: ExitStack) -> None:
    topic = harness.topic()
    (place,) = harness.places(topic)
    harness.append(*numbered(topic, 4))
    reader = beside(harness, harness.name("group"), closing, topic)
    until(lambda: reader.end(place) in {4, 5}, "the end of a log that nobody reads")
    reader.start(place, 0)
    drained(reader, place)
    opened = harness.open_transaction()
    opened.append(*numbered(topic, 3))
    for _ in range(10):
        assert not reader.read(9, MB, 0.05)
        assert reader.end(place) == reader.position(place) == 4
    opened.commit()
    assert drained(reader, place) == [4, 5, 6]
    assert (reader.end(place) or 0) >= 7
    reader.stop(place)
    until(lambda: (reader.end(place) or 0) >= 7, "the end once it was stopped")


def test_an_end_is_known_before_anything_is_read(harness: Harness, closing: ExitStack) -> None:
    topic = harness.topic(2)
    first, second = sorted(harness.places(topic))
    harness.append(*numbered(topic, 6))
    reader = beside(harness, harness.name("group"), closing, topic)
    reader.start(first, 2)
    reader.start(second, 0)
    until(lambda: (reader.end(first), reader.end(second)) == (6, 0), "both ends")
    assert (reader.position(first), reader.position(second)) == (2, 0)


def test_what_waits_is_read_at_once_after_a_start(harness: Harness, closing: ExitStack) -> None:
    """Whether the partition runs, stands at its end, or was stopped; librdkafka's threads sleep."""
    topic = harness.topic(2)
    place, other = sorted(harness.places(topic))
    harness.append(*numbered(topic, 30), *numbered(topic, 3, 1))
    reader = beside(harness, harness.name("group"), closing, topic)
    for each in (other, place):
        reader.start(each, 0)
        drained(reader, each)
    took = []
    for round_ in range(12):
        reader.read(9, MB, 0.2)  # Idle.
        if round_ % 3 == 2:
            reader.stop(place)
            reader.read(9, MB, 0.2)
        start = (20, 0)[round_ % 2]
        began = monotonic()
        reader.start(place, start)
        read = outcome(reader)
        took.append(monotonic() - began)
        assert not isinstance(read, OffsetOutOfRange)
        assert read[0].offset == start
        drained(reader, place)
    assert sorted(took)[len(took) // 2] < 0.6
