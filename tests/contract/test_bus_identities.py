"""A topic that was deleted and recreated is another one, whatever its name."""

from contextlib import closing

import pytest

from tests.contract.conftest import BUSES
from tests.support.breadth import slow
from tests.support.bus_harness import Harness
from tests.support.bus_seats import until
from worker.bus import LogReader, Outgoing, Record, TopicPartition, TopicRecreated

ALL_BUSES = [
    *BUSES,
    pytest.param("kafka-consumer", marks=[pytest.mark.kafka, pytest.mark.slow(ci=False)]),
]

pytestmark = pytest.mark.parametrize("harness", ALL_BUSES, indirect=True)


def write(harness: Harness, topic: str, count: int, what: str) -> None:
    """Write numbered records."""
    harness.append(*(Outgoing(topic, 0, None, f"{what}-{n}".encode()) for n in range(count)))


def test_a_later_topic_has_another_identity(harness: Harness) -> None:
    topic = harness.topic()
    before = harness.bus.identity(topic)
    harness.recreate(topic)
    assert harness.bus.identity(topic) != before


# Few records of the old topic: its position is soon one of the new topic's, too.
@pytest.mark.parametrize("read", [1, 20])
def test_nothing_of_a_later_topic_is_delivered(harness: Harness, read: int) -> None:
    topic, target, group = harness.topic(), harness.topic(), harness.name("group")
    (place,) = harness.places(topic)
    before = harness.bus.identity(topic)
    harness.commit_offsets(group, {place: 0})
    write(harness, topic, read, "old")
    seat = harness.alone(topic, group=group)
    seat.rewind()
    seat.collect(read)
    seat.member.commit([Outgoing(target, 0, None, b"copy")], {place: read})

    harness.recreate(topic)
    write(harness, topic, 200, "new")
    with pytest.raises(TopicRecreated) as raised:
        until(lambda: seat.poll() and False, "the poll to say so")
    assert (raised.value.topic, raised.value.was) == (topic, before)
    assert raised.value.now == harness.bus.identity(topic)
    assert "neither judged nor rejected" in str(raised.value)
    with pytest.raises(TopicRecreated):
        seat.poll()
    with pytest.raises(TopicRecreated):
        seat.member.commit([Outgoing(target, 0, None, b"more")], {place: read + 1})
    assert all((record.value or b"").startswith(b"old") for record in seat.records)
    assert len(harness.read_committed(target)) == 1


def has(reader: LogReader, records: list[Record], count: int) -> bool:
    records.extend(reader.read(100, 1 << 20, 0.05))
    return len(records) == count


@pytest.mark.parametrize("read", [1, 20])
def test_a_reader_hands_out_nothing_of_a_later_topic(harness: Harness, read: int) -> None:
    topic = harness.topic()
    (place,) = harness.places(topic)
    before = harness.bus.identity(topic)
    write(harness, topic, read, "old")
    with closing(harness.bus.log_reader(harness.name("group"), [topic])) as reader:
        reader.start(place, 0)
        records: list[Record] = []
        until(lambda: has(reader, records, read), "the old topic")
        harness.recreate(topic)
        write(harness, topic, 200, "new")
        with pytest.raises(TopicRecreated) as raised:
            until(lambda: has(reader, records, -1), "the reader to say so")
        assert (raised.value.topic, raised.value.was) == (topic, before)
        assert raised.value.now == harness.bus.identity(topic)
        with pytest.raises(TopicRecreated):
            has(reader, records, -1)
    assert [r.value for r in records] == [b"old-%d" % number for number in range(read)]


def test_a_reader_says_so_of_a_topic_of_which_it_reads_nothing_now(harness: Harness) -> None:
    topic, other = harness.topic(), harness.topic()
    with closing(harness.bus.log_reader(harness.name("group"), [topic, other])) as reader:
        reader.start(TopicPartition(other, 0), 0)
        reader.start(TopicPartition(topic, 0), 0)
        reader.stop(TopicPartition(topic, 0))
        harness.recreate(topic)
        with pytest.raises(TopicRecreated):
            until(lambda: has(reader, [], -1), "the reader to say so")


def test_a_reader_goes_on_without_a_topic_that_is_gone(harness: Harness) -> None:
    gone, other = harness.topic(), harness.topic()
    write(harness, gone, 3, "gone")
    with closing(harness.bus.log_reader(harness.name("group"), [gone, other])) as reader:
        for topic in (gone, other):
            reader.start(TopicPartition(topic, 0), 0)
        records: list[Record] = []
        until(lambda: has(reader, records, 3), "the records of both")
        harness.delete_topic(gone)
        write(harness, other, 5, "other")
        until(lambda: has(reader, records, 8), "the other topic")
        for _ in range(20):
            assert has(reader, records, 8)


def test_a_reader_reads_the_topics_that_it_was_made_for(harness: Harness) -> None:
    topic, other = harness.topic(), harness.topic()
    with closing(harness.bus.log_reader(harness.name("group"), [topic])) as reader:
        with pytest.raises(ValueError, match=other):
            reader.start(TopicPartition(other, 0), 0)
        assert reader.watermarks(TopicPartition(other, 0)) == (0, 0)


def test_an_offset_of_an_earlier_topic_is_refused(harness: Harness) -> None:
    """Nobody was there when the topic was recreated."""
    topic, group = harness.topic(), harness.name("group")
    (place,) = harness.places(topic)
    before = harness.bus.identity(topic)
    harness.recreate(topic)
    write(harness, topic, 9, "new")
    harness.commit_offsets(group, {place: 4}, before)
    seat = harness.alone(topic, group=group)
    with pytest.raises(TopicRecreated) as raised:
        seat.member.committed([place])
    assert (raised.value.was, raised.value.now) == (before, harness.bus.identity(topic))


def test_an_offset_without_an_identity_is_trusted(harness: Harness) -> None:
    """Another tool has set it, or a version that knew nothing of identities."""
    topic, target, group = harness.topic(), harness.topic(), harness.name("group")
    (place,) = harness.places(topic)
    write(harness, topic, 9, "old")
    harness.commit_offsets(group, {place: 4})
    seat = harness.alone(topic, group=group)
    assert seat.member.committed([place]) == {place: 4}
    seat.rewind()
    seat.collect(5)
    seat.member.commit([Outgoing(target, 0, None, b"copy")], {place: 9})
    assert seat.member.committed([place]) == {place: 9}


def test_a_topic_that_is_gone_is_no_error(harness: Harness) -> None:
    """It may come back, and the others are read meanwhile."""
    gone, other, group = harness.topic(), harness.topic(), harness.name("group")
    places = dict.fromkeys(harness.places(gone, other), 0)
    write(harness, gone, 3, "gone")
    seat = harness.alone(gone, other, group=group)
    seat.start()
    seat.collect(3)
    seat.member.commit([], {**places, TopicPartition(gone, 0): 3})
    harness.delete_topic(gone)
    write(harness, other, 5, "other")

    def read() -> bool:
        if seat.poll().assignment is not None:
            seat.start()
        return len({record.value for record in seat.records}) == 8

    until(read, "the other topic")


def test_offsets_of_another_topic_carry_its_identity(harness: Harness) -> None:
    """The topics of the group say who owns what; where each number is in the log, its offsets."""
    owned, log, target = harness.topic(2), harness.topic(), harness.topic()
    group = harness.name("group")
    first, second = sorted(harness.places(owned))
    harness.commit_offsets(group, {first: 3, second: 7}, harness.bus.identity(log))
    seat = harness.join(group, [owned], "alone", of=log)
    harness.settle([seat], owned)
    assert seat.member.committed([first, second]) == {first: 3, second: 7}
    seat.member.commit([Outgoing(target, 0, None, b"more")], {first: 11})
    assert seat.member.committed([first, second]) == {first: 11, second: 7}
    assert seat.member.lag() == {}
    seat.member.close()
    # Whoever comes without `of` takes them for what they are not, and is told.
    later = harness.join(group, [owned], "alone")
    harness.settle([later], owned)
    with pytest.raises(TopicRecreated) as raised:
        later.member.committed([first, second])
    assert raised.value.topic == owned


@pytest.mark.parametrize("anew", ["log", slow("owned")])
def test_the_topic_of_the_offsets_is_watched_as_the_others_are(harness: Harness, anew: str) -> None:
    topics = {"owned": harness.topic(), "log": harness.topic()}
    target, group = harness.topic(), harness.name("group")
    place = TopicPartition(topics["owned"], 0)
    harness.commit_offsets(group, {place: 0})
    seat = harness.join(group, [topics["owned"]], "alone", of=topics["log"])
    harness.settle([seat], topics["owned"])
    seat.member.committed([place])
    seat.member.commit([Outgoing(target, 0, None, b"before")], {place: 5})
    before = harness.bus.identity(topics[anew])
    harness.recreate(topics[anew])
    with pytest.raises(TopicRecreated) as raised:
        until(lambda: seat.poll() and False, "the poll to say so")
    assert (raised.value.topic, raised.value.was) == (topics[anew], before)
    with pytest.raises(TopicRecreated):
        seat.member.commit([Outgoing(target, 0, None, b"after")], {place: 6})
    assert [record.value for record in harness.read_committed(target)] == [b"before"]


def test_an_offset_of_an_earlier_log_is_refused(harness: Harness) -> None:
    owned, log, group = harness.topic(), harness.topic(), harness.name("group")
    (place,) = harness.places(owned)
    before = harness.bus.identity(log)
    harness.commit_offsets(group, {place: 4}, before)
    harness.recreate(log)
    seat = harness.join(group, [owned], "alone", of=log)
    harness.settle([seat], owned)
    with pytest.raises(TopicRecreated) as raised:
        seat.member.committed([place])
    assert (raised.value.topic, raised.value.was) == (log, before)
    assert raised.value.now == harness.bus.identity(log)
