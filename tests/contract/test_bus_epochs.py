"""The leader epochs that are committed with offsets: what a member claims of a log."""

from tests.support.bus_harness import Harness
from tests.support.bus_seats import Seat
from worker.bus import Claim, Outgoing, TopicPartition

READ = 3


def write(harness: Harness, topic: str, count: int) -> None:
    """Write records to the topic's first partition."""
    harness.append(*(Outgoing(topic, 0, None, b"%d" % number) for number in range(count)))


def claims(harness: Harness, topic: str, group: str) -> dict[TopicPartition, Claim]:
    """Return what the group's offsets claim."""
    later = harness.alone(topic, group=group)
    later.rewind()
    return {**later.member.claims()}


def test_what_a_member_has_read_it_claims(harness: Harness) -> None:
    topic, group = harness.topic(), harness.name("group")
    (place,) = harness.places(topic)
    write(harness, topic, READ)
    seat = harness.alone(topic, group=group)
    seat.start()
    seat.collect(READ)
    seat.member.commit([], {place: READ})
    found = {**seat.member.claims()}
    assert found[place].offset == READ
    seat.member.close(leave=True)
    assert claims(harness, topic, group) == found


def behind(harness: Harness, topic: str, group: str) -> Seat:
    """Return a seat that has read 1 of 12 records."""
    write(harness, topic, 1)
    seat = harness.alone(topic, group=group)
    seat.start()
    seat.collect(1)
    write(harness, topic, 11)
    return seat


def test_a_member_claims_nothing_of_what_it_has_not_read(harness: Harness) -> None:
    topic, group = harness.topic(), harness.name("group")
    (place,) = harness.places(topic)
    seat = behind(harness, topic, group)
    seat.member.commit([], {place: 12})
    seat.member.close(leave=True)
    assert claims(harness, topic, group) == {}


def test_a_member_is_told_what_it_has_not_read(harness: Harness) -> None:
    """It then claims that, and goes on with it as it commits the same offset again."""
    topic, group = harness.topic(), harness.name("group")
    (place,) = harness.places(topic)
    seat = behind(harness, topic, group)
    seat.member.commit([], {place: 12}, epochs={place: 4})
    assert seat.member.claims()[place] == Claim(12, 4)
    seat.member.commit([], {place: 12})
    seat.member.close(leave=True)
    assert claims(harness, topic, group) == {place: Claim(12, 4)}
