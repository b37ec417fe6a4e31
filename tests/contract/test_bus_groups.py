"""Who reads what: seats, rebalances, restarts, and members that missed one."""

from itertools import pairwise

import pytest

from tests.contract.conftest import MEMORY_FIRST
from tests.support.bus_harness import Harness
from tests.support.bus_seats import Seat, next_offsets, records_of, until
from worker.bus import Aborted, Fenced, Outgoing, TopicPartition

BOTH_PROTOCOLS = [
    "memory",
    pytest.param("kafka", marks=pytest.mark.kafka),
    pytest.param("kafka-consumer", marks=[pytest.mark.kafka, pytest.mark.slow(ci=False)]),
]


def numbers_of(seat: Seat, topic: str) -> list[int]:
    """Give the partition numbers of a topic that a seat owns."""
    return [place.partition for place in seat.owned if place.topic == topic]


@pytest.mark.parametrize("members", [1, 2, 3])
def test_members_share_all_partitions(harness: Harness, members: int) -> None:
    """Equal numbers of equally partitioned topics go together; nobody has two more."""
    five, other, one = harness.topic(5), harness.topic(5), harness.topic(1)
    topics, group = (five, other, one), harness.name("group")
    seats = [harness.join(group, topics, f"worker-{n}") for n in range(members)]
    harness.settle(seats, *topics)
    for seat in seats:
        assert numbers_of(seat, five) == numbers_of(seat, other)
    counts = sorted(len(numbers_of(seat, five)) for seat in seats)
    assert counts[-1] - counts[0] <= 1


def test_more_members_than_partitions(harness: Harness) -> None:
    """One is told that it owns nothing, and lives on."""
    topic, group = harness.topic(), harness.name("group")
    seats = [harness.join(group, [topic], f"worker-{n}") for n in range(2)]
    assert [seat.member.waiting for seat in seats] == [True, True]
    harness.settle(seats, topic)
    assert sorted(len(seat.owned) for seat in seats) == [0, 1]
    assert [seat.member.waiting for seat in seats] == [False, False]
    harness.append(Outgoing(topic, 0, None, b"a"))
    for seat in seats:
        seat.start()
    until(lambda: any(s.poll().batches for s in seats), "the record")


def test_groups_do_not_share(harness: Harness) -> None:
    topic = harness.topic()
    harness.append(Outgoing(topic, 0, None, b"a"))
    for seat in (harness.alone(topic), harness.alone(topic)):
        seat.start()
        seat.collect(1)


def test_the_assignment_stands_while_nobody_comes_or_goes(harness: Harness) -> None:
    topic = harness.topic(2)
    harness.append(*(Outgoing(topic, n % 2, None, b"") for n in range(10)))
    seat = harness.alone(topic)
    seat.start()
    until(lambda: seat.poll(1).assignment is None and len(seat.records) == 10, "all records")


@pytest.mark.parametrize("harness", MEMORY_FIRST, indirect=True)
def test_one_leaves_for_good(harness: Harness) -> None:
    topic, group = harness.topic(4), harness.name("group")
    stays, leaves = (harness.join(group, [topic], name) for name in ("stays", "leaves"))
    harness.settle([stays, leaves], topic)
    assert len(stays.owned) == 2
    leaves.member.close(leave=True)
    harness.settle([stays], topic)
    assert len(stays.owned) == 4


def test_a_restart_finds_its_seat(harness: Harness) -> None:
    """Under the same name it gets the same partitions, and the others don't notice."""
    topic, group = harness.topic(4), harness.name("group")
    stays, leaves = (harness.join(group, [topic], name) for name in ("stays", "restarts"))
    harness.settle([stays, leaves], topic)
    before = stays.assignment, leaves.assignment
    leaves.member.close()
    again = harness.join(group, [topic], "restarts")
    harness.settle([stays, again], topic)
    assert (stays.assignment, again.assignment) == before


def test_after_a_rebalance_nothing_flows_by_itself(harness: Harness) -> None:
    """The new assignment is paused and has no position: also what the member had before."""
    topic, group = harness.topic(2), harness.name("group")
    harness.append(*(Outgoing(topic, p, None, b"") for p in (0, 1) for _ in range(5)))
    first = harness.join(group, [topic], "first")
    harness.settle([first], topic)
    first.start()
    first.collect(10)
    second = harness.join(group, [topic], "second")
    harness.settle([first, second], topic)
    first.records.clear()
    (mine,) = first.owned
    first.member.seek(mine, 2)
    first.member.resume([mine])
    assert {(r.partition, r.offset) for r in first.collect(3)} == {
        (mine.partition, offset) for offset in (2, 3, 4)
    }
    assert records_of(second.poll()) == second.records == []


@pytest.mark.parametrize("harness", MEMORY_FIRST, indirect=True)
def test_a_member_that_missed_the_rebalance_cannot_commit(harness: Harness) -> None:
    """Aborted; or Fenced where the group has given up on it meanwhile."""
    source, target, group = harness.topic(2), harness.topic(), harness.name("group")
    harness.append(*(Outgoing(source, p, None, b"") for p in (0, 1)))
    late = harness.join(group, [source], "late")
    harness.settle([late], source)
    late.start()
    late.collect(2)
    new = harness.join(group, [source], "new")
    until(lambda: new.poll().assignment, "partitions for the new member")
    with pytest.raises((Aborted, Fenced)) as raised:
        late.member.commit([Outgoing(target, 0, None, b"late")], next_offsets(late.records))
    assert harness.read_committed(target) == []
    places = sorted(harness.places(source))
    assert harness.committed(group, places) == dict.fromkeys(places)
    if raised.type is Aborted:
        harness.settle([late, new], source)


@pytest.mark.parametrize("harness", MEMORY_FIRST, indirect=True)
def test_nothing_is_lost_or_doubled_while_members_come_and_go(harness: Harness) -> None:
    """A stage that copies, with one, two, three and again two members, one of them restarted."""
    source, target, group = harness.topic(4), harness.topic(4), harness.name("group")
    written = [Outgoing(source, n % 4, None, str(n).encode()) for n in range(200)]
    seats = {"a": harness.join(group, [source], "a")}

    def work(until_done: int) -> None:
        def done() -> bool:
            idle = [seat.copy(target, limit=7) for seat in list(seats.values())]
            return all(idle) and len(harness.read_committed(target)) >= until_done

        until(done, f"{until_done} copies by {sorted(seats)}")

    harness.append(*written[:40])
    work(40)
    harness.append(*written[40:80])
    seats["b"] = harness.join(group, [source], "b")
    work(80)
    harness.append(*written[80:120])
    seats["c"] = harness.join(group, [source], "c")
    seats["a"].copy(target, limit=3)
    work(120)
    harness.append(*written[120:160])
    seats["b"].copy(target, limit=3)
    seats["b"].member.close()
    seats["b"] = harness.join(group, [source], "b")
    work(160)
    harness.append(*written[160:])
    seats.pop("a").member.close(leave=True)
    work(200)

    copies = harness.read_committed(target)
    assert len(copies) == 200
    for partition in range(4):
        mine = [r for r in copies if r.partition == partition]
        assert [r.value for r in mine] == [w.value for w in written if w.partition == partition]
        assert all(earlier.offset < later.offset for earlier, later in pairwise(mine))
    ends = {TopicPartition(source, p): 50 for p in range(4)}
    assert harness.committed(group, ends) == ends


@pytest.mark.parametrize("harness", BOTH_PROTOCOLS, indirect=True)
def test_members_that_read_other_topics_keep_their_seats(harness: Harness) -> None:
    """While they do so one by one, they share each topic among those that read it."""
    one, other, group = harness.topic(4), harness.topic(4), harness.name("group")
    seats = [harness.join(group, [one], f"worker-{n}") for n in range(2)]
    harness.settle(seats, one)
    seats[0].member.commit((), {seats[0].owned[0]: 7})
    for topics in ([one, other], [other]):
        for seat in seats:
            seat.assignment = None
            seat.member.subscribe(topics)

        def shared(topics: list[str] = topics) -> bool:
            news = [seat.poll().assignment is not None for seat in seats]
            return not any(news) and all(
                len(numbers_of(seat, other)) == 2
                and all(numbers_of(seat, topic) == numbers_of(seat, other) for topic in topics)
                for seat in seats
            )

        until(shared, "both to have the same numbers of all topics")
        for seat in seats:
            seat.member.commit((), dict.fromkeys(seat.owned, 9))
    harness.append(*(Outgoing(other, n, None, b"a") for n in range(4)))
    for seat in seats:
        seat.start()
    until(lambda: all(len((s.poll(), s.records)[1]) == 2 for s in seats), "the records")


@pytest.mark.parametrize("harness", BOTH_PROTOCOLS, indirect=True)
@pytest.mark.parametrize("others", [0, 1])
def test_a_member_that_reads_what_it_has_is_told_so(harness: Harness, others: int) -> None:
    """The group may have nothing to change, not even for a member that has nothing."""
    topic, group = harness.topic(), harness.name("group")
    seats = [harness.join(group, [topic], f"worker-{n}") for n in range(1 + others)]
    harness.settle(seats, topic)
    for seat in seats:
        seat.assignment = None
        seat.member.subscribe([topic])
    harness.settle(seats, topic)
    assert sorted(len(seat.owned) for seat in seats) == [0] * others + [1]
    assert not any(seat.member.waiting for seat in seats)


@pytest.mark.parametrize("harness", BOTH_PROTOCOLS, indirect=True)
def test_an_assignment_names_only_topics_that_the_member_still_reads(harness: Harness) -> None:
    """Even if one was under way for those that it has read before."""
    one, other, group = harness.topic(2), harness.topic(2), harness.name("group")
    seat = harness.join(group, [one], "worker")
    seat.poll()
    seat.member.subscribe([one, other])
    seat.poll()
    seat.member.subscribe([other])

    def settled() -> bool:
        assignment = seat.poll().assignment
        if assignment:
            assert {place.topic for place in assignment} == {other}
            seat.member.committed(assignment)
        return seat.owned == sorted(harness.places(other))

    until(settled, "the other topic")
