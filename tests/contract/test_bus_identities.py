"""A topic that was deleted and made anew is another one, whatever its name."""

import pytest

from tests.contract.conftest import BUSES
from tests.contract.harness import Harness
from tests.contract.seats import until
from worker.bus.port import Outgoing, TopicPartition, TopicRecreated

ALL_BUSES = [*BUSES, pytest.param("kafka-consumer", marks=pytest.mark.kafka)]

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


def test_an_offset_of_an_earlier_topic_is_refused(harness: Harness) -> None:
    """Nobody was there when the topic was made anew."""
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
