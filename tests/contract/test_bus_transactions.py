"""What a transaction promises: all or nothing, seen at once, by one owner."""

import random

import pytest

from tests.support.breadth import slow
from tests.support.bus_harness import Harness
from tests.support.bus_seats import next_offsets, until
from worker.bus import Effect, Fenced, Offset, OutcomeUnknown, Outgoing, Refused, TopicPartition


def values(harness: Harness, topic: str) -> list[bytes | None]:
    """Give all visible values of a topic."""
    return [record.value for record in harness.read_committed(topic)]


def test_records_and_offsets_become_visible_together(harness: Harness) -> None:
    source, one, two = harness.topic(2), harness.topic(), harness.topic(2)
    group = harness.name("group")
    seat = harness.alone(source, group=group)
    first, second = seat.owned
    assert seat.member.committed(seat.owned) == {first: None, second: None}
    seat.member.commit(
        [
            Outgoing(one, 0, None, b"a"),
            Outgoing(two, 1, None, b"b"),
            Outgoing(two, 0, None, b"c"),
            Outgoing(one, 0, None, b"d"),
        ],
        {first: 3},
    )
    assert values(harness, one) == [b"a", b"d"]
    assert values(harness, two) == [b"c", b"b"]
    assert harness.committed(group, [first, second]) == {first: 3, second: None}
    seat.member.commit([], {second: 7})
    seat.member.commit([Outgoing(one, 0, None, b"e")], {})
    seat.member.commit([], {})
    assert harness.committed(group, [first, second]) == {first: 3, second: 7}
    assert values(harness, one) == [b"a", b"d", b"e"]


def test_an_iterator_of_records_will_do(harness: Harness) -> None:
    source, target = harness.topic(), harness.topic()
    seat = harness.alone(source)
    seat.member.commit((Outgoing(target, 0, None, bytes([n])) for n in range(3)), {})
    assert values(harness, target) == [b"\0", b"\1", b"\2"]


def test_an_open_transaction_is_not_seen(harness: Harness) -> None:
    topic, other = harness.topic(), harness.topic()
    transaction = harness.open_transaction()
    transaction.append(Outgoing(topic, 0, None, b"a"), Outgoing(other, 0, None, b"b"))
    assert values(harness, topic) == values(harness, other) == []
    transaction.commit()
    assert (values(harness, topic), values(harness, other)) == ([b"a"], [b"b"])


def test_an_aborted_transaction_is_never_seen(harness: Harness) -> None:
    topic = harness.topic()
    seat = harness.alone(topic)
    seat.start()
    harness.append(Outgoing(topic, 0, None, b"before"))
    transaction = harness.open_transaction()
    transaction.append(Outgoing(topic, 0, None, b"aborted"))
    harness.append(Outgoing(topic, 0, None, b"after"))
    transaction.abort()
    seat.collect(2)
    assert seat.values == values(harness, topic) == [b"before", b"after"]


@pytest.mark.parametrize("commit", [True, slow(False)])
def test_an_open_transaction_holds_back_all_that_is_later(
    harness: Harness, *, commit: bool
) -> None:
    """The last stable offset: whoever wrote it, and however it ended. Partition by partition."""
    topic = harness.topic(2)
    held, free = sorted(harness.places(topic))
    seat = harness.alone(topic)
    seat.start()
    harness.append(Outgoing(topic, 0, None, b"0"))
    first = harness.open_transaction()
    first.append(Outgoing(topic, 0, None, b"1"))
    second = harness.open_transaction()
    second.append(Outgoing(topic, 0, None, b"2"))
    harness.append(Outgoing(topic, 0, None, b"3"), Outgoing(topic, 1, None, b"free"))
    second.commit()
    seat.collect(2)
    assert sorted(seat.values, key=str) == [b"0", b"free"]
    assert seat.member.watermarks(held) == (0, 1)
    assert seat.member.watermarks(free) == (0, 1)
    if commit:
        first.commit()
    else:
        first.abort()
    expected = [b"0", b"1", b"2", b"3"] if commit else [b"0", b"2", b"3"]
    seat.collect(len(expected) + 1)
    assert [r.value for r in seat.records if r.partition == 0] == expected
    # Four records and two markers.
    until(lambda: seat.member.watermarks(held) == (0, 6), "the end is stable")


def test_a_position_behind_an_open_transaction_waits(harness: Harness) -> None:
    """Above the last stable offset, but not above the end: that is in range."""
    topic = harness.topic(2)
    transaction = harness.open_transaction()
    transaction.append(Outgoing(topic, 0, None, b"0"))
    harness.append(Outgoing(topic, 0, None, b"1"), Outgoing(topic, 1, None, b"free"))
    seat = harness.alone(topic)
    seat.start({TopicPartition(topic, 0): 1})
    assert seat.collect(1)[0].value == b"free"
    transaction.commit()
    assert seat.collect(2)[1].value == b"1"


def test_markers_leave_gaps(harness: Harness) -> None:
    """Commit and abort take one offset in each partition that was written to."""
    source, topic = harness.topic(), harness.topic(2)
    seat = harness.alone(source)
    seat.member.commit([Outgoing(topic, 0, None, b"0"), Outgoing(topic, 0, None, b"1")], {})
    aborted = harness.open_transaction()
    aborted.append(Outgoing(topic, 0, None, b"3"), Outgoing(topic, 1, None, b"0"))
    aborted.abort()
    harness.append(Outgoing(topic, 0, None, b"5"), Outgoing(topic, 1, None, b"2"))
    seen = [(r.partition, r.offset, r.value) for r in harness.read_committed(topic)]
    assert seen == [(0, 0, b"0"), (0, 1, b"1"), (0, 5, b"5"), (1, 2, b"2")]


def test_a_reader_passes_markers(harness: Harness) -> None:
    """Also at the end of the log, and a position on a marker is as good as any."""
    source, topic = harness.topic(), harness.topic()
    writer, reader = harness.alone(source), harness.alone(topic)
    for n in range(3):
        writer.member.commit([Outgoing(topic, 0, None, str(n).encode())], {})
    reader.start(1)
    reader.collect(2)
    assert [r.offset for r in reader.records] == [2, 4]
    assert reader.member.watermarks(reader.owned[0]) == (0, 6)
    reader.start(6)
    writer.member.commit([Outgoing(topic, 0, None, b"3")], {})
    assert reader.collect(3)[-1].offset == 6


def test_a_position_passes_what_is_never_delivered(harness: Harness) -> None:
    """Markers and aborted records, but no record that was not delivered."""
    source, topic = harness.topic(), harness.topic()
    writer, reader = harness.alone(source), harness.alone(topic)
    (place,) = reader.owned
    assert reader.member.positions() == {}
    writer.member.commit([Outgoing(topic, 0, None, bytes([n])) for n in range(3)], {})
    aborted = harness.open_transaction()
    aborted.append(Outgoing(topic, 0, None, b"aborted"))
    aborted.abort()
    reader.start()
    while len(reader.records) < 3:
        reader.poll(limit=1)
        assert reader.member.positions()[place] >= len(reader.records)
        if len(reader.records) < 3:
            assert reader.member.positions() == {place: len(reader.records)}
    # Three records and a marker, an aborted one and a marker.
    until(lambda: reader.poll() and reader.member.positions() == {place: 6}, "all is passed")
    reader.member.seek(place, 1)
    assert reader.member.positions() == {place: 1}
    reader.member.seek(place, 3)
    assert reader.member.positions() == {place: 3}
    until(lambda: reader.poll() and reader.member.positions() == {place: 6}, "markers are passed")
    assert len(reader.records) == 3


def test_records_that_a_topic_refuses_are_named_and_nothing_is_written(harness: Harness) -> None:
    source, small, large = harness.topic(), harness.topic(max_bytes=50_000), harness.topic()
    seat = harness.alone(source)
    (place,) = seat.owned
    noise = random.Random(7)
    fits, big = (Outgoing(small, 0, b"k", noise.randbytes(size)) for size in (10_000, 200_000))
    other = Outgoing(large, 0, None, noise.randbytes(200_000))
    for _ in range(2):
        seat.poll()
        with pytest.raises(Refused) as refused:
            seat.member.commit([other, big], {place: 1})
        assert refused.value.records == [big]
    assert seat.member.committed([place]) == {place: None}
    seat.poll()
    seat.member.commit([other, fits], {place: 1})
    # Nothing of the transactions that were refused.
    assert values(harness, small) == [fits.value]
    assert values(harness, large) == [other.value]
    assert seat.member.committed([place]) == {place: 1}


def test_committed_after_renew(harness: Harness) -> None:
    """What was committed stays so, and the renewed producer commits on."""
    source, target = harness.topic(), harness.topic()
    seat = harness.alone(source)
    (place,) = seat.owned
    seat.member.commit([Outgoing(target, 0, None, b"a")], {place: 1})
    seat.member.renew()
    assert seat.member.committed([place]) == {place: 1}
    seat.member.commit([Outgoing(target, 0, None, b"b")], {place: 2})
    assert seat.member.committed([place]) == {place: 2}
    assert values(harness, target) == [b"a", b"b"]


def test_a_state_is_committed_with_its_offset(harness: Harness) -> None:
    source, target = harness.topic(2), harness.topic()
    seat = harness.alone(source)
    first, second = seat.owned
    seat.member.commit([Outgoing(target, 0, None, b"a")], {first: Offset(3, "on"), second: 4})
    assert seat.member.committed(seat.owned) == {first: Offset(3, "on"), second: 4}
    seat.member.commit([], {second: Offset(4, "off")})
    assert seat.member.committed(seat.owned) == {first: Offset(3, "on"), second: Offset(4, "off")}
    seat.member.commit([], {first: 3, second: Offset(5, "on")})
    assert seat.member.committed(seat.owned) == {first: 3, second: Offset(5, "on")}


def test_a_state_is_rolled_back_with_its_offset(harness: Harness) -> None:
    source, target = harness.topic(), harness.topic(max_bytes=50_000)
    seat = harness.alone(source)
    (place,) = seat.owned
    seat.member.commit([], {place: Offset(1, "on")})
    refused = Outgoing(target, 0, None, random.Random(7).randbytes(200_000))
    with pytest.raises(Refused):
        seat.member.commit([refused], {place: 1})
    seat.member.renew()
    assert seat.member.committed([place]) == {place: Offset(1, "on")}


def test_a_transaction_that_is_rolled_back_has_no_effect(harness: Harness) -> None:
    source, one, two = harness.topic(), harness.topic(2), harness.topic(max_bytes=50_000)
    seat = harness.alone(source)
    (place,) = seat.owned
    fits = Outgoing(one, 1, None, b"a")
    refused = Outgoing(two, 0, None, random.Random(7).randbytes(200_000))
    assert seat.member.effect() == Effect()
    with pytest.raises(Refused):
        seat.member.commit([fits, refused], {place: 2})
    effect = seat.member.effect()
    assert not any(effect.records)
    assert not effect.offsets
    assert not effect.partial
    seat.member.commit([fits], {place: 1})
    assert seat.member.effect() == Effect()
    assert values(harness, one) == [b"a"]


def test_a_second_owner_of_the_name_fences_the_first(harness: Harness) -> None:
    source, target, group = harness.topic(), harness.topic(), harness.name("group")
    harness.append(*(Outgoing(source, 0, None, bytes([n])) for n in range(4)))
    ghost = harness.alone(source, group=group)
    ghost.start()
    ghost.collect(4)
    assert ghost.copy(target, limit=1)  # Nothing left; it is alive and well.
    ghost.member.commit([Outgoing(target, 0, None, b"mine")], {ghost.owned[0]: 1})

    heir = harness.join(group, [source], "alone")
    until(lambda: heir.poll().assignment is not None, "the heir's assignment")
    assert heir.assignment == ghost.assignment
    # A producer alone can't tell its successor from its own transaction's timeout, so it may
    # call the outcome unknown. That it is over, the group says in the next poll.
    with pytest.raises((Fenced, OutcomeUnknown)):
        ghost.member.commit([Outgoing(target, 0, None, b"ghost")], next_offsets(ghost.records))
    with pytest.raises(Fenced):
        until(lambda: ghost.poll() and False, "the ghost is fenced")
    ghost.member.close()

    heir.rewind()
    assert [r.offset for r in heir.collect(3)] == [1, 2, 3]
    heir.member.commit([Outgoing(target, 0, None, b"heir")], next_offsets(heir.records))
    assert values(harness, target) == [b"mine", b"heir"]
    assert harness.committed(group, heir.owned) == {heir.owned[0]: 4}
