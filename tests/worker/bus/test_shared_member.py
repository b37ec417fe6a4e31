"""A member whose seats are partitions of an empty topic, and whose records are those of a log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.bus_seats import records_of
from tests.worker.bus.shared_log import LOG, MANY, Shared, by_seat, seat
from worker.bus import OffsetOutOfRange, Outgoing
from worker.bus.memory.member import MemoryMember
from worker.bus.shared import SharedMember

SEATS = [seat(0), seat(1)]


class Site(Shared):
    """A log, and a group on two seats."""

    def __init__(self) -> None:
        super().__init__()
        self.bus.create_topic("seats", 2)
        self.bus.create_topic("answers", 1)
        self.bus.commit_offsets("g", dict.fromkeys(SEATS, 0), of=LOG.topic)
        self.member = SharedMember(self.join("one"), self.reader)

    def join(self, name: str) -> MemoryMember:
        return self.bus.join("g", ["seats"], name, of=LOG.topic)

    def sit(self, *offsets: int) -> None:
        """Take the seats, and read each from an offset."""
        assert self.member.poll(1, 1, 0.0).assignment is not None
        for place, offset in zip(SEATS, offsets, strict=False):
            self.member.seek(place, offset)
        self.member.resume(SEATS)

    def transact(self, count: int) -> None:
        """Write records, and the marker of their transaction."""
        transaction = self.bus.begin("writer")
        transaction.append_many([Outgoing(*LOG, None, b"x")] * count)
        transaction.commit()

    def poll(self, limit: int = 1_000) -> dict[int, list[int]]:
        polled = self.member.poll(limit, MANY, 0.0)
        assert polled.assignment is None
        return by_seat(records_of(polled))


@pytest.fixture
def site() -> Iterator[Site]:
    one = Site()
    yield one
    one.member.close()


def test_an_assignment_brings_no_records_and_nothing_is_read_before_a_seek(site: Site) -> None:
    site.append(5)
    polled = site.member.poll(100, MANY, 0.0)
    assert (polled.assignment, records_of(polled)) == (frozenset(SEATS), [])
    site.member.resume(SEATS)
    assert site.poll() == {}
    assert site.member.positions() == {}
    site.member.seek(SEATS[0], 2)
    assert site.poll() == {}
    site.member.resume(SEATS)
    assert site.poll() == {0: [2, 3, 4]}


def test_a_new_assignment_forgets_where_all_were(site: Site) -> None:
    site.sit(0, 0)
    site.append(3)
    assert site.poll() == {0: [0, 1, 2], 1: [0, 1, 2]}
    second = site.join("two")
    assert second.poll(1, 1, 0.0).assignment == frozenset(SEATS[1:])
    site.append(3)
    polled = site.member.poll(100, MANY, 0.0)
    assert (polled.assignment, records_of(polled)) == (frozenset(SEATS[:1]), [])
    assert site.fetching == 0
    assert site.member.positions() == {}
    assert site.member.lag() == {}
    assert site.poll() == {}
    site.member.seek(SEATS[0], 3)
    site.member.resume([SEATS[0]])
    assert site.poll() == {0: [3, 4, 5]}


def test_offsets_are_committed_under_the_seat(site: Site) -> None:
    site.sit(0, 0)
    site.append(3)
    site.poll()
    answer = Outgoing("answers", 0, None, b"x")
    site.member.commit([answer], {SEATS[0]: 3, SEATS[1]: 2})
    assert site.member.committed(SEATS) == {SEATS[0]: 3, SEATS[1]: 2}
    assert site.bus.committed("g") == {SEATS[0]: 3, SEATS[1]: 2}
    assert len(site.bus.read("answers", 0, 0, 9)) == 1


def test_what_is_paused_stays_where_it_is(site: Site) -> None:
    site.sit(0, 0)
    site.transact(2)
    assert site.poll() == {0: [0, 1], 1: [0, 1]}
    assert site.member.positions() == {SEATS[0]: 3, SEATS[1]: 3}  # Past the marker.
    site.member.pause([SEATS[0]])
    assert site.member.positions() == {SEATS[0]: 3, SEATS[1]: 3}
    site.transact(2)
    assert site.poll() == {1: [3, 4]}
    site.member.pause(SEATS)
    assert site.fetching == 0
    assert site.poll() == {}
    site.member.resume(SEATS)
    assert site.poll() == {0: [3, 4]}
    assert site.member.positions() == {SEATS[0]: 6, SEATS[1]: 6}
    assert site.fetching == 1


def test_a_seek_goes_anywhere_whether_it_is_read_or_not(site: Site) -> None:
    site.sit(0, 0)
    site.append(4)
    site.poll()
    site.member.seek(SEATS[0], 1)
    assert site.member.positions() == {SEATS[0]: 1, SEATS[1]: 4}
    assert site.poll() == {0: [1, 2, 3]}
    site.member.pause([SEATS[1]])
    site.member.seek(SEATS[1], 2)
    assert site.member.positions() == {SEATS[0]: 4, SEATS[1]: 2}
    assert site.poll() == {}
    site.member.resume([SEATS[1]])
    assert site.poll() == {1: [2, 3]}


def test_one_that_replays_never_holds_up_one_that_is_live(site: Site) -> None:
    site.append(1_000)
    site.sit(0, 1_000)
    replayed = 0
    for offset in range(1_000, 1_030):
        site.append(1)
        found = site.poll(limit=20)
        assert found[1] == [offset]
        assert found[0] == list(range(replayed, replayed + 10))
        replayed += 10
    assert site.member.positions() == {SEATS[0]: 300, SEATS[1]: 1_030}
    assert site.member.lag() == {SEATS[0]: 730, SEATS[1]: 0}


def test_a_lag_is_known_of_seats_that_still_wait(site: Site) -> None:
    """As of a shard whose store is being fetched."""
    site.append(10)
    site.member.poll(1, 1, 0.0)
    assert site.member.committed(SEATS) == dict.fromkeys(SEATS, 0)
    site.member.seek(SEATS[0], 7)
    site.member.resume([SEATS[0]])
    site.poll(limit=1)
    assert site.member.lag() == {SEATS[0]: 2, SEATS[1]: 10}
    site.poll()
    assert site.member.lag() == {SEATS[0]: 0, SEATS[1]: 10}


def test_the_log_is_asked_where_it_begins_and_ends(site: Site) -> None:
    site.append(10)
    site.bus.trim(*LOG, 4)
    site.sit(4, 4)
    assert [site.member.watermarks(place) for place in SEATS] == [(4, 10), (4, 10)]


def test_a_seat_that_is_out_of_range_is_named(site: Site) -> None:
    site.append(500)
    site.sit(10, 500)
    site.bus.trim(*LOG, 100)
    with pytest.raises(OffsetOutOfRange) as told:
        site.poll()
    assert told.value.partition == SEATS[0]
    site.member.seek(SEATS[0], 100)
    assert site.poll() == {0: list(range(100, 500))}


def test_to_close_is_to_leave_and_to_disconnect(site: Site) -> None:
    site.sit(0, 0)
    site.append(1)
    site.poll()
    site.member.close(leave=True)
    assert site.join("two").poll(1, 1, 0.0).assignment == frozenset(SEATS)
    assert [connection.calls[-1] for connection in site.connections] == ["close"]
