"""Reading ranges of a log to their ends."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.support.bus_harness import Harness
from worker.bus import BusError, LogReader, OffsetOutOfRange, Outgoing, TopicPartition, Unanswered
from worker.bus.ranges import RangeReader, Ranges, read_bursts, read_ranges

MB = 1 << 20


@pytest.fixture
def topic(harness: Harness) -> str:
    """A topic with ten records in each of two partitions."""
    name = harness.topic(2)
    harness.append(*(Outgoing(name, n % 2, None, b"%d" % n) for n in range(20)))
    return name


@pytest.fixture
def reader(harness: Harness, topic: str) -> Iterator[LogReader]:
    made = harness.bus.log_reader(harness.name("group"), [topic])
    yield made
    made.close()


def offsets(reader: LogReader, ranges: Ranges) -> list[tuple[int, int]]:
    return sorted((record.partition, record.offset) for record in read_ranges(reader, ranges))


def test_each_range_is_read_to_its_end_and_stopped(reader: LogReader, topic: str) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert offsets(reader, {first: (3, 5), second: (8, 10)}) == [(0, 3), (0, 4), (1, 8), (1, 9)]
    assert reader.position(first) is reader.position(second) is None
    assert offsets(reader, {first: (4, 5)}) == [(0, 4)]


def test_an_empty_range_reads_nothing(reader: LogReader, topic: str) -> None:
    assert not offsets(reader, {TopicPartition(topic, 0): (4, 4)})
    assert not offsets(reader, {})


def test_a_range_may_end_with_what_is_never_delivered(
    harness: Harness, reader: LogReader, topic: str
) -> None:
    aborted = harness.open_transaction()
    aborted.append(Outgoing(topic, 0, None, b"a"), Outgoing(topic, 0, None, b"b"))
    aborted.abort()
    place = TopicPartition(topic, 0)
    assert reader.watermarks(place) == (0, 13)
    assert offsets(reader, {place: (8, 13)}) == [(0, 8), (0, 9)]


def test_what_retention_has_deleted_is_passed_over(
    harness: Harness, reader: LogReader, topic: str
) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    harness.trim(first, 8)
    harness.trim(second, 6)
    assert offsets(reader, {first: (2, 10), second: (2, 5)}) == [(0, 8), (0, 9)]


def test_a_range_past_the_end_of_the_log_is_refused(reader: LogReader, topic: str) -> None:
    with pytest.raises(BusError, match=r"offset 20 is outside the log \[0, 10\)"):
        offsets(reader, {TopicPartition(topic, 0): (20, 30)})


def test_a_log_that_falls_silent_ends_the_reading(
    harness: Harness, reader: LogReader, topic: str
) -> None:
    waiting = harness.open_transaction()
    waiting.append(Outgoing(topic, 0, None, b"later"))
    place = TopicPartition(topic, 0)
    clock = count()
    records = read_ranges(reader, {place: (8, 11)}, silence=3, clock=lambda: float(next(clock)))
    assert [next(records).offset for _ in range(2)] == [8, 9]
    with pytest.raises(Unanswered, match=rf"no record of {topic}\[0\] has arrived for 3 s"):
        next(records)
    assert reader.position(place) is None
    waiting.commit()
    assert offsets(reader, {place: (8, 11)}) == [(0, 8), (0, 9), (0, 10)]


def test_only_the_time_of_reads_counts_as_silence(reader: LogReader, topic: str) -> None:
    clock = count()
    reading = RangeReader(reader, silence=3, clock=lambda: float(next(clock)))
    reading.start(TopicPartition(topic, 0), 0, 10)
    while reading.left:
        reading.read(3, MB, 5.0)
        for _ in range(100):
            next(clock)


def test_bursts_are_bounded_in_records(reader: LogReader, topic: str) -> None:
    ranges = {TopicPartition(topic, number): (0, 10) for number in range(2)}
    bursts = list(read_bursts(reader, ranges, limit=3))
    assert max(map(len, bursts)) == 3
    assert sum(map(len, bursts)) == 20


def test_who_reads_no_further_leaves_nothing_started(reader: LogReader, topic: str) -> None:
    place = TopicPartition(topic, 0)
    assert any(record.offset == 2 for record in read_ranges(reader, {place: (2, 10)}, limit=1))
    assert reader.position(place) is None


def test_a_reader_may_go_on_elsewhere_to_the_same_end(
    harness: Harness, reader: LogReader, topic: str
) -> None:
    place = TopicPartition(topic, 0)
    harness.trim(place, 4)
    reading = RangeReader(reader)
    reading.start(place, 1, 6)
    with pytest.raises(OffsetOutOfRange) as raised:
        list(iter(lambda: reading.read(9, MB, 1.0), None))
    reading.go_on(place, raised.value.low)
    read = []
    while reading.left:
        read += [record.offset for record in reading.read(9, MB, 1.0)]
    assert read == [4, 5]
    reading.start(place, 4, 6)
    reading.go_on(place, 6)
    assert not reading.left
