"""What a member reads: bytes as written, from where it was told, as much as it asked for."""

import time

import pytest

from tests.support.breadth import mostly_slow
from tests.support.bus_harness import Harness
from tests.support.bus_seats import Seat, next_offsets, until
from worker.bus import OffsetOutOfRange, Outgoing, TopicPartition
from worker.bus.memory.topics import partition_for

# For what takes many rebalances of a real group.
KAFKA_LATER = [
    "memory",
    pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.slow(ci=False)]),
]
KEYS = [b"", b"21", b"foobar", "ключ".encode(), b"a-little-bit-long"]
HEADERS = (("b", b"1"), ("a", b"\x00\xff"), ("b", None), ("b", b"1"), ("", b""))


def numbered(topic: str, count: int, partition: int = 0, first: int = 0) -> list[Outgoing]:
    """Give records whose value is their number."""
    numbers = range(first, first + count)
    return [Outgoing(topic, partition, None, str(n).encode()) for n in numbers]


def until_raises(seat: Seat, error: type[Exception]) -> pytest.ExceptionInfo[Exception]:
    """Poll until the error comes."""
    with pytest.raises(error) as raised:
        until(lambda: seat.poll() and False, f"{error.__name__}")
    return raised


def test_partition_counts(harness: Harness) -> None:
    one, three = harness.topic(1), harness.topic(3)
    missing = harness.name("missing")
    assert harness.bus.partitions([one, three, missing]) == {one: 1, three: 3, missing: None}


def test_a_topic_has_an_identity(harness: Harness) -> None:
    one, other = harness.topic(), harness.topic()
    assert harness.bus.identity(one) == harness.bus.identity(one) != harness.bus.identity(other)


def test_bytes_come_back_as_they_were(harness: Harness) -> None:
    topic = harness.topic()
    written = [
        Outgoing(topic, 0, b"key", b"value", HEADERS, 1_500_000_000_000),
        Outgoing(topic, 0, None, None),
        Outgoing(topic, 0, b"", b""),
        Outgoing(topic, 0, b"\x00", b"\xff\xfe"),
    ]
    offsets = harness.append(*written)
    seat = harness.alone(topic)
    seat.start()
    read = seat.collect(len(written))
    assert [r.offset for r in read] == offsets == [0, 1, 2, 3]
    assert [(r.key, r.value, r.headers) for r in read] == [
        (w.key, w.value, w.headers) for w in written
    ]
    assert (read[0].topic, read[0].partition, read[0].timestamp) == (topic, 0, 1_500_000_000_000)
    committed = harness.read_committed(topic)
    assert [r[:-1] for r in committed] == [r[:-1] for r in read], "all but the leader epoch"


def test_commit_writes_bytes_as_they_are(harness: Harness) -> None:
    source, target = harness.topic(), harness.topic()
    seat = harness.alone(source)
    written = [
        Outgoing(target, 0, b"key", b"value", HEADERS, 1_500_000_000_000),
        Outgoing(target, 0, None, None),
        Outgoing(target, 0, b"", b""),
    ]
    seat.member.commit(written, {})
    assert [(r.key, r.value, r.headers) for r in harness.read_committed(target)] == [
        (w.key, w.value, w.headers) for w in written
    ]


def test_timestamps(harness: Harness) -> None:
    """The record's own time counts, except where the log stamps everything itself."""
    before = time.time_ns() // 1_000_000 - 1_000  # clocks of two processes
    given, stamped = harness.topic(), harness.topic(log_append_time=True)
    seat = harness.alone(given)
    old = 1_000_000_000_000
    records = [Outgoing(t, 0, None, b"", (), at) for t in (given, stamped) for at in (old, None)]
    harness.append(*records)
    seat.member.commit(records, {})
    kept = [r.timestamp for r in harness.read_committed(given)]
    assert kept[0] == kept[2] == old
    assert min(kept[1], kept[3]) >= before
    assert min(r.timestamp for r in harness.read_committed(stamped)) >= before


@pytest.mark.parametrize("key", mostly_slow(KEYS, b"", "ключ".encode()))
def test_the_key_decides_the_partition(harness: Harness, key: bytes) -> None:
    """By murmur2, as for every Java client: an empty key is a key."""
    source, target = harness.topic(), harness.topic(5)
    seat = harness.alone(source)
    seat.member.commit([Outgoing(target, None, key, b"")], {})
    (record,) = harness.read_committed(target)
    assert record.partition == partition_for(key, 5)


def test_order_within_a_partition(harness: Harness) -> None:
    topic = harness.topic(2)
    for n in range(20):
        harness.append(*numbered(topic, 1, partition=n % 2, first=n))
    seat = harness.alone(topic)
    seat.start()
    read = seat.collect(20, limit=3)
    for partition in (0, 1):
        mine = [r for r in read if r.partition == partition]
        assert [r.offset for r in mine] == list(range(10))
        assert [r.value for r in mine] == [str(2 * n + partition).encode() for n in range(10)]


def test_a_poll_is_bounded(harness: Harness) -> None:
    """By ``limit`` exactly; by ``max_bytes`` to within a record."""
    topic = harness.topic()
    harness.append(*(Outgoing(topic, 0, b"k" * 10, b"v" * 990) for _ in range(20)))
    seat = harness.alone(topic)
    seat.start()
    sizes: list[int] = []
    while sum(sizes) < 20:
        until(lambda: seat.poll(max_bytes=5_000) and len(seat.records) > sum(sizes), "records")
        sizes.append(len(seat.records) - sum(sizes))
    assert max(sizes) <= 6
    seat.records.clear()
    seat.start()
    seat.collect(20, limit=3)  # `Seat.poll` checks the limit.
    assert [r.offset for r in seat.records] == list(range(20))


def test_a_large_record_is_delivered(harness: Harness) -> None:
    """``max_bytes`` never holds up the log."""
    topic = harness.topic()
    harness.append(Outgoing(topic, 0, None, b"v" * 10_000), Outgoing(topic, 0, None, b"w"))
    seat = harness.alone(topic)
    seat.start()
    until(lambda: seat.poll(max_bytes=100) and len(seat.records) == 2, "both records")


def test_nothing_flows_before_resume(harness: Harness) -> None:
    topic = harness.topic(2)
    harness.append(*numbered(topic, 3, partition=0))
    harness.append(*numbered(topic, 3, partition=1))
    seat = harness.alone(topic)
    for partition in seat.owned:
        seat.member.seek(partition, 0)
    seat.member.resume([TopicPartition(topic, 1)])
    assert {r.partition for r in seat.collect(3)} == {1}


def test_pause_and_resume(harness: Harness) -> None:
    """A paused partition keeps its position; others go on; nothing is lost or doubled."""
    topic = harness.topic(2)
    paused, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    harness.append(*numbered(topic, 10, partition=0))
    seat = harness.alone(topic)
    seat.start()
    until(lambda: seat.poll(limit=4) and len(seat.records) >= 4, "some records")
    seat.member.pause([paused])
    so_far = len(seat.records)
    harness.append(*numbered(topic, 5, partition=0, first=10))
    harness.append(*numbered(topic, 5, partition=1))
    assert {r.partition for r in seat.collect(so_far + 5)[so_far:]} == {other.partition}
    seat.member.resume([paused])
    seat.collect(20)
    assert [r.offset for r in seat.records if r.partition == 0] == list(range(15))


def test_seek_back_and_forth(harness: Harness) -> None:
    topic = harness.topic()
    harness.append(*numbered(topic, 10))
    seat = harness.alone(topic)
    seat.start()
    seat.collect(10)
    for position in (2, 7, 0, 9):
        seat.records.clear()
        seat.member.seek(seat.owned[0], position)
        assert [r.offset for r in seat.collect(10 - position)] == list(range(position, 10))


def test_seek_drops_what_was_fetched(harness: Harness) -> None:
    topic = harness.topic()
    harness.append(*numbered(topic, 10))
    seat = harness.alone(topic)
    seat.start()
    until(lambda: seat.poll(limit=1) and seat.records, "a record")
    seat.member.seek(seat.owned[0], 8)
    seat.records.clear()
    assert [r.offset for r in seat.collect(2)] == [8, 9]


def test_out_of_range_after_the_end(harness: Harness) -> None:
    topic = harness.topic()
    harness.append(*numbered(topic, 3))
    seat = harness.alone(topic)
    seat.start(5)
    error = until_raises(seat, OffsetOutOfRange).value
    assert isinstance(error, OffsetOutOfRange)
    assert (error.partition, error.position) == (seat.owned[0], 5)
    assert (error.low, error.high) == (0, 3)
    seat.start(1)
    assert [r.offset for r in seat.collect(2)] == [1, 2]


def test_out_of_range_before_the_start(harness: Harness) -> None:
    topic = harness.topic()
    harness.append(*numbered(topic, 5))
    seat = harness.alone(topic)
    harness.trim(seat.owned[0], 3)
    assert [r.offset for r in harness.read_committed(topic)] == [3, 4]
    seat.start(2)
    error = until_raises(seat, OffsetOutOfRange).value
    assert isinstance(error, OffsetOutOfRange)
    assert (error.position, error.low, error.high) == (2, 3, 5)
    seat.start(3)
    assert [r.offset for r in seat.collect(2)] == [3, 4]


def test_what_was_not_started_yet_is_out_of_no_range(harness: Harness) -> None:
    """A partition may wait for its state while its log has been trimmed."""
    topic = harness.topic()
    harness.append(*numbered(topic, 5))
    harness.trim(TopicPartition(topic, 0), 3)
    seat = harness.alone(topic)
    for _ in range(20):
        assert not seat.poll().batches
    seat.start(3)
    assert [r.offset for r in seat.collect(2)] == [3, 4]


@pytest.mark.parametrize("harness", KAFKA_LATER, indirect=True)
def test_what_was_asked_for_before_the_start_is_out_of_no_range(harness: Harness) -> None:
    """A new assignment may be started at once, before the next poll, on a log long trimmed."""
    topic, group = harness.topic(4), harness.name("group")
    for number in range(4):
        harness.append(*numbered(topic, 5, partition=number))
        harness.trim(TopicPartition(topic, number), 3)
    stays = harness.join(group, [topic], "stays")
    harness.settle([stays], topic)
    for _ in range(3):
        comes = harness.join(group, [topic], "comes")
        _settle_and_start([stays, comes], topic, 4)
        comes.member.close(leave=True)
        _settle_and_start([stays], topic, 4)


def _settle_and_start(seats: list[Seat], topic: str, offset: int) -> None:
    """Have seats share a topic, and start whatever they get as soon as they get it."""
    for seat in seats:
        seat.assignment = None
        seat.records.clear()

    def settled() -> bool:
        for seat in seats:
            if seat.poll().assignment is None:
                continue
            for place in seat.owned:
                assert seat.member.watermarks(place) == (3, 5)
            seat.start(offset)
        places = [place for seat in seats for place in seat.owned]
        return len(places) == 4 == sum(len(seat.records) for seat in seats)

    until(settled, f"{len(seats)} members read {topic}")


def test_the_end_is_in_range(harness: Harness) -> None:
    """Of an empty log, too: a reader waits there."""
    topic = harness.topic()
    seat = harness.alone(topic)
    seat.start(0)
    harness.append(*numbered(topic, 2))
    assert len(seat.collect(2)) == 2
    harness.trim(seat.owned[0], 2)
    seat.start(2)
    harness.append(*numbered(topic, 1, first=2))
    assert seat.collect(3)[-1].offset == 2


def test_watermarks(harness: Harness) -> None:
    topic = harness.topic()
    seat = harness.alone(topic)
    (place,) = seat.owned
    assert seat.member.watermarks(place) == (0, 0)
    harness.append(*numbered(topic, 5))
    assert seat.member.watermarks(place) == (0, 5)
    harness.trim(place, 2)
    assert seat.member.watermarks(place) == (2, 5)


def test_lag_goes_down_to_nothing(harness: Harness) -> None:
    topic = harness.topic(2)
    seat = harness.alone(topic)
    harness.append(*numbered(topic, 5), *numbered(topic, 3, partition=1))
    seat.start()
    seat.collect(8)
    none = dict.fromkeys(seat.owned, 0)

    def caught_up() -> bool:
        seat.poll()
        return seat.member.lag() == none

    until(caught_up, "no lag")


def test_the_lag_of_a_paused_partition_grows(harness: Harness) -> None:
    topic = harness.topic(2)
    paused, other = sorted(harness.places(topic))
    harness.append(*numbered(topic, 5), *numbered(topic, 5, partition=1))
    seat = harness.alone(topic)
    seat.start()
    seat.collect(10)
    seat.member.pause([paused])
    harness.append(*numbered(topic, 7, first=5))

    def shown() -> bool:
        seat.poll()
        return seat.member.lag() == {paused: 7, other: 0}

    until(shown, "the lag of the paused partition")
    assert len(seat.records) == 10
    seat.member.resume([paused])
    until(lambda: seat.poll() and seat.member.lag() == {paused: 0, other: 0}, "no lag")


def test_a_partition_that_is_not_started_has_a_lag(harness: Harness) -> None:
    """A shard may be restored for hours; it is the committed offset that counts."""
    topic, group = harness.topic(2), harness.name("group")
    first, second = sorted(harness.places(topic))
    harness.commit_offsets(group, {first: 2, second: 0})
    harness.append(*numbered(topic, 6))
    seat = harness.alone(topic, group=group)
    assert seat.member.committed([first, second]) == {first: 2, second: 0}

    def shown() -> bool:
        seat.poll()
        return seat.member.lag() == {first: 4, second: 0}

    until(shown, "the lag of what was never fetched")
    assert not seat.records


def test_offsets_that_were_set_from_outside(harness: Harness) -> None:
    topic, group = harness.topic(2), harness.name("group")
    first, second = sorted(harness.places(topic))
    harness.commit_offsets(group, {first: 4})
    assert harness.committed(group, [first, second]) == {first: 4, second: None}
    seat = harness.alone(topic, group=group)
    assert seat.member.committed([first, second]) == {first: 4, second: None}
    harness.append(*numbered(topic, 6))
    seat.rewind()
    assert next_offsets(seat.collect(2)) == {first: 6}
