"""Seats that read one log in whole: who shares a connection, and that nobody misses a record."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.corpus import examples
from tests.worker.bus.shared_log import LOG, MANY, Shared, by_seat, seat
from worker.bus import OffsetOutOfRange, Outgoing, PartitionUnreadable, Record
from worker.bus.memory.transaction import Transaction
from worker.bus.shared import _NEAR, SharedReader


@pytest.fixture
def shared() -> Shared:
    return Shared()


def test_seats_that_are_equally_far_share_one_reader(shared: Shared) -> None:
    shared.append(5)
    for number in range(3):
        shared.reader.start(seat(number), 2)
    records = shared.reader.read(100, MANY, 0.0)
    log = shared.bus.read(*LOG, 2, MANY)
    for number in range(3):
        own = [record for record in records if record[:2] == seat(number)]
        assert own == [record._replace(topic="seats", partition=number) for record in log]
    assert len(shared.connections) == 1


def test_one_that_is_far_behind_has_its_own_until_it_has_caught_up(shared: Shared) -> None:
    shared.append(200)
    shared.reader.start(seat(0), 200)
    shared.reader.start(seat(1), 0)
    assert shared.read(80) == {1: list(range(40))}
    assert shared.fetching == 2
    shared.append(1)
    found = shared.read(80)
    assert list(found.items()) == [(0, [200]), (1, list(range(40, 80)))]
    rest: list[int] = []
    while shared.fetching > 1:
        rest += shared.read(80).get(1, [])
    assert rest == list(range(80, 201))
    assert [connection.calls[-1] for connection in shared.connections] == ["close", "start"]
    shared.append(1)
    assert shared.read() == {0: [201], 1: [201]}


def test_one_that_is_near_and_ahead_skips_what_it_has_had(shared: Shared) -> None:
    shared.append(100)
    shared.reader.start(seat(0), 10)
    shared.reader.start(seat(1), 10 + _NEAR)
    assert shared.reader.position(seat(1)) == 10 + _NEAR
    assert shared.read(20) == {0: list(range(10, 20))}
    assert shared.reader.position(seat(1)) == 10 + _NEAR
    found = shared.read()
    assert found == {0: list(range(20, 100)), 1: list(range(10 + _NEAR, 100))}
    assert len(shared.connections) == 1


def test_one_that_is_farther_ahead_waits_for_nobody(shared: Shared) -> None:
    shared.append(100)
    shared.reader.start(seat(0), 10)
    shared.reader.start(seat(1), 11 + _NEAR)
    assert shared.read(20)[1] == list(range(11 + _NEAR, 21 + _NEAR))
    assert shared.fetching == 2


def test_a_limit_is_for_all_seats_together(shared: Shared) -> None:
    shared.append(300)
    for number, offset in enumerate((0, 0, 200)):
        shared.reader.start(seat(number), offset)
    assert {number: len(own) for number, own in shared.read(30).items()} == {0: 10, 1: 10, 2: 10}
    assert {number: len(own) for number, own in shared.read(1).items()} == {0: 1, 1: 1, 2: 1}


def test_what_is_stopped_is_not_fetched_any_more(shared: Shared) -> None:
    shared.append(10)
    for number in range(2):
        shared.reader.start(seat(number), 0)
    shared.read()
    shared.append(10)
    shared.reader.stop(seat(0))
    assert shared.read() == {1: list(range(10, 20))}
    assert shared.reader.position(seat(0)) is None
    shared.reader.stop(seat(1))
    assert shared.fetching == 0
    shared.append(10)
    assert shared.read() == {}
    shared.reader.stop(seat(1))
    shared.reader.start(seat(1), 15)
    assert shared.read() == {1: list(range(15, 30))}


def test_one_that_is_started_and_stopped_before_a_read_is_not_fetched(shared: Shared) -> None:
    shared.append(10)
    shared.reader.start(seat(0), 0)
    shared.read(1)
    shared.reader.start(seat(0), 5)
    shared.reader.stop(seat(0))
    assert shared.fetching == 0
    assert shared.read() == {}


def test_going_back_takes_the_connection_along(shared: Shared) -> None:
    """As after each transaction that was rolled back."""
    shared.append(10)
    for number in range(2):
        shared.reader.start(seat(number), 0)
    assert shared.read()
    for number in range(2):
        shared.reader.start(seat(number), 3)
    assert shared.read() == {0: list(range(3, 10)), 1: list(range(3, 10))}
    (connection,) = shared.connections
    assert connection.calls == ["start", "start"]


def test_it_waits_where_the_next_record_will_come_and_only_if_there_is_none(
    shared: Shared,
) -> None:
    shared.append(200)
    shared.reader.start(seat(0), 200)
    shared.reader.start(seat(1), 0)
    shared.reader.read(10, MANY, 0.5)
    live, behind = shared.connections
    if live.position(LOG) != 200:
        live, behind = behind, live
    assert (live.waits, behind.waits) == ([0.0], [0.0])
    shared.damaged.add(5)  # So that nothing comes of the one behind.
    shared.reader.stop(seat(1))
    shared.reader.read(10, MANY, 0.5)
    assert live.waits == [0.0, 0.5]


def test_with_nothing_to_read_it_waits_too(shared: Shared) -> None:
    """Or whoever reads in a loop would turn as fast as it can."""
    assert shared.reader.read(10, MANY, 0.25) == []
    (connection,) = shared.connections
    assert (connection.waits, connection.fetching) == ([0.25], False)


def test_a_position_is_past_markers(shared: Shared) -> None:
    for number in range(2):
        shared.reader.start(seat(number), 0)
    transaction = shared.bus.begin("writer")
    transaction.append_many([Outgoing(*LOG, None, b"x")])
    transaction.commit()
    aborted = shared.bus.begin("writer")
    aborted.append_many([Outgoing(*LOG, None, b"y")])
    aborted.abort()
    assert shared.read() == {0: [0], 1: [0]}
    assert [shared.reader.position(seat(number)) for number in range(2)] == [4, 4]
    assert shared.reader.end(seat(0)) == 4
    assert shared.reader.watermarks(seat(1)) == (0, 4)


def far_apart(shared: Shared) -> None:
    """Have two seats far behind a third one, and the log trimmed past them."""
    shared.append(300)
    for number, offset in enumerate((10, 10, 290)):
        shared.reader.start(seat(number), offset)
    shared.read(3)
    shared.bus.trim(*LOG, 20)


def test_who_is_out_of_range_is_named_once_the_others_have_had_theirs(shared: Shared) -> None:
    far_apart(shared)
    assert shared.read(30) == {2: list(range(291, 300))}
    shared.append(5)
    for _ in range(2):
        with pytest.raises(OffsetOutOfRange, match=r"log\[0\]: offset 11 is outside") as told:
            shared.read(30)
        assert told.value.partition == seat(0)
        assert (told.value.position, told.value.low) == (11, 20)
    shared.reader.stop(seat(0))
    with pytest.raises(OffsetOutOfRange) as told:
        shared.read(30)
    assert told.value.partition == seat(1)
    shared.reader.stop(seat(1))
    assert shared.read(30) == {2: list(range(300, 305))}


def test_who_begins_anew_does_not_come_back_to_what_fails(shared: Shared) -> None:
    far_apart(shared)
    shared.reader.stop(seat(2))
    with pytest.raises(OffsetOutOfRange):
        shared.read(4)
    shared.reader.start(seat(0), 20)  # Near to where the other one still is.
    assert shared.read(4) == {0: [20, 21]}
    with pytest.raises(OffsetOutOfRange) as told:
        shared.read(4)
    assert told.value.partition == seat(1)
    shared.reader.start(seat(1), 22)
    assert shared.read(4) == {0: [22, 23], 1: [22, 23]}
    assert shared.fetching == 1


def test_who_has_passed_what_is_gone_is_not_blamed(shared: Shared) -> None:
    shared.append(100)
    shared.reader.start(seat(0), 50)
    shared.reader.start(seat(1), 10)
    shared.reader.stop(seat(1))
    shared.reader.start(seat(1), 10)
    shared.read(2)
    assert shared.fetching == 1
    shared.bus.trim(*LOG, 30)
    with pytest.raises(OffsetOutOfRange) as told:
        shared.read()
    assert told.value.partition == seat(1)
    shared.reader.stop(seat(1))
    assert shared.read() == {0: list(range(50, 100))}


def test_one_alone_that_has_passed_what_is_gone_goes_on(shared: Shared) -> None:
    shared.append(100)
    for number, offset in enumerate((50, 10)):
        shared.reader.start(seat(number), offset)
    shared.read(2)
    shared.reader.stop(seat(1))
    shared.bus.trim(*LOG, 30)
    shared.read()
    assert shared.read() == {0: list(range(50, 100))}


def test_a_record_that_cannot_be_read_holds_up_those_who_need_it(shared: Shared) -> None:
    shared.append(300)
    for number, offset in enumerate((10, 30, 200)):
        shared.reader.start(seat(number), offset)
    shared.damaged.add(20)
    assert shared.read() == {0: list(range(10, 20)), 2: list(range(200, 300))}
    with pytest.raises(PartitionUnreadable, match=r"log\[0\] can't be read from offset 20") as told:
        shared.read()
    assert told.value.partition == seat(0)
    shared.append(1)
    shared.reader.stop(seat(0))
    assert shared.read() == {2: [300], 1: list(range(30, 301))}


def test_to_close_is_to_close_all(shared: Shared) -> None:
    shared.append(200)
    shared.reader.start(seat(0), 200)
    shared.reader.start(seat(1), 0)
    shared.read(2)
    shared.reader.close()
    assert [connection.calls[-1] for connection in shared.connections] == ["close", "close"]


class Model(RuleBasedStateMachine):
    """Seats that come, go and jump, against what each must get: all from where it began."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = Shared()
        self.history: dict[int, Record] = {}
        self.wanted: dict[int, int] = {}
        self.open: Transaction | None = None

    seats = st.integers(0, 3)

    @property
    def reader(self) -> SharedReader:
        return self.shared.reader

    @property
    def span(self) -> tuple[int, int]:
        return self.shared.bus.start_offset(*LOG), self.shared.bus.end_offset(*LOG)

    def look(self) -> None:
        """Note what readers of committed records may see by now."""
        found = self.shared.bus.read(*LOG, self.span[0], MANY)
        self.history |= {record.offset: record for record in found}

    def following(self, number: int) -> list[int]:
        return sorted(offset for offset in self.history if offset >= self.wanted[number])

    @rule(count=st.integers(1, 100))
    def append(self, count: int) -> None:
        self.shared.append(count)
        self.look()

    @precondition(lambda self: self.open is None)
    @rule(count=st.integers(1, 3))
    def begin(self, count: int) -> None:
        self.open = self.shared.bus.begin("writer")
        self.open.append_many(Outgoing(*LOG, None, b"t") for _ in range(count))

    @precondition(lambda self: self.open is not None)
    @rule(commit=st.booleans())
    def end(self, *, commit: bool) -> None:
        assert self.open is not None
        if commit:
            self.open.commit()
        else:
            self.open.abort()
        self.open = None
        self.look()

    @rule(count=st.integers(1, 30) | st.just(MANY))
    def trim(self, count: int) -> None:
        low, stable = self.shared.bus.log_reader("g", [LOG.topic]).watermarks(LOG)
        self.shared.bus.trim(*LOG, min(low + count, stable))

    @rule(part=st.floats(0, 1))
    def damage(self, part: float) -> None:
        if self.history:
            offsets = sorted(self.history)
            self.shared.damaged.add(offsets[int(part * (len(offsets) - 1))])

    @rule()
    def repair(self) -> None:
        self.shared.damaged.clear()

    @rule(number=seats, part=st.floats(-0.1, 1.1))
    def start(self, number: int, part: float) -> None:
        low, end = self.span
        offset = max(0, low + int(part * (end - low)))
        self.reader.start(seat(number), offset)
        self.wanted[number] = offset

    @rule(number=seats, other=seats, ahead=st.integers(0, 70))
    def start_near(self, number: int, other: int, ahead: int) -> None:
        if other in self.wanted:
            self.wanted[number] = self.wanted[other] + ahead
            self.reader.start(seat(number), self.wanted[number])

    @rule(number=seats)
    def stop(self, number: int) -> None:
        self.reader.stop(seat(number))
        self.wanted.pop(number, None)

    @rule(limit=st.integers(1, 40), size=st.sampled_from([1, 20, MANY]))
    def read(self, limit: int, size: int) -> None:
        try:
            records = self.reader.read(limit, size, 0.0)
        except (OffsetOutOfRange, PartitionUnreadable) as error:
            self.is_to_blame(error)
            return
        assert len(records) <= max(limit, len(self.wanted))
        for number, offsets in by_seat(records).items():
            assert offsets == self.following(number)[: len(offsets)]
            self.wanted[number] = offsets[-1] + 1
        for record in records:
            assert self.history[record.offset][2:] == record[2:]

    def is_to_blame(self, error: OffsetOutOfRange | PartitionUnreadable) -> None:
        number = error.partition.partition
        if isinstance(error, PartitionUnreadable):
            assert self.following(number)[0] in self.shared.damaged
        else:
            low, end = self.span
            assert not low <= self.wanted[number] <= end

    @invariant()
    def a_position_is_past_nothing_that_is_owed(self) -> None:
        for number in range(4):
            position = self.reader.position(seat(number))
            if number not in self.wanted:
                assert position is None
                continue
            assert position is not None
            assert position >= self.wanted[number]
            assert all(offset >= position for offset in self.following(number))

    @invariant()
    def nothing_is_fetched_for_nobody(self) -> None:
        assert self.shared.fetching <= len(self.wanted)

    def teardown(self) -> None:
        """Let all catch up; whoever is out of range begins anew."""
        if self.open is not None:
            self.end(commit=True)
        self.repair()
        for _ in range(4 * len(self.history) + 100):
            low, end = self.span
            for number, offset in self.wanted.items():
                if not low <= offset <= end:
                    self.start(number, 0.0)
            self.read(1_000, MANY)
        assert not any(self.following(number) for number in self.wanted)
        assert self.shared.fetching == min(1, len(self.wanted))
        self.reader.close()
        assert all(connection.calls[-1] == "close" for connection in self.shared.connections)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)
