"""The turn of a generation's shards: from its hand-over on, up to the next one's."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from worker.bus import Offset, Record, TopicPartition
from worker.generations.turns import (
    BUILDING,
    NEVER,
    SEALED,
    WAITING,
    Turns,
    answers_from,
    answers_yet,
)
from worker.wire.codec import FrameError, HandOver

SEAT = TopicPartition("a.shards", 0)
OTHER = TopicPartition("a.shards", 1)


def log(*values: bytes | int | None) -> list[Record]:
    """Return records from offset 10 on; a number is the hand-over to that generation."""
    return [
        Record("a.fingerprints", 0, 10 + at, -1, None, _encoded(value))
        for at, value in enumerate(values)
    ]


def _encoded(value: bytes | int | None) -> bytes | None:
    return HandOver("layout", value).encode() if isinstance(value, int) else value


@pytest.fixture
def turns() -> Turns:
    return Turns(1, "layout")


def offsets(records: Iterable[Record]) -> list[int]:
    return [record.offset for record in records]


def test_a_shard_begins_to_answer_after_the_hand_over_to_its_generation(turns: Turns) -> None:
    turn = turns.of(SEAT, NEVER, log(1))
    assert (turn.begun, turn.passed, list(turn.frames)) == (11, None, [])
    again = turns.of(SEAT, 5, log(1))
    assert (again.begun, again.passed) == (None, 11)


def test_earlier_hand_overs_are_passed_and_records_that_are_none(turns: Turns) -> None:
    turn = turns.of(SEAT, NEVER, log(0, b"no frame", None))
    assert (turn.begun, turn.passed, offsets(turn.nothing)) == (None, 13, [11, 12])
    assert list(turn.frames) == []


def test_a_shard_ends_at_the_hand_over_to_a_later_one_until_it_is_read_again(turns: Turns) -> None:
    turn = turns.of(SEAT, 5, log(None, 2, None))
    assert offsets(turn.nothing) == [10], "nothing after the hand-over is its business"
    assert turns.ended == {SEAT}
    assert turns.of(SEAT, 5, log(None)).passed is None
    assert turns.of(OTHER, 5, log(None)).passed == 11
    turns.forget([SEAT])
    assert turns.ended == frozenset()
    assert turns.of(SEAT, 5, log(None)).passed == 11


def test_a_hand_over_of_another_layout_is_refused(turns: Turns) -> None:
    with pytest.raises(FrameError, match="layout"):
        turns.of(SEAT, 5, log(HandOver("b", 1).encode()))


def test_a_state_says_whether_a_shard_has_answered() -> None:
    assert answers_from(7) == 7
    assert int(answers_from(Offset(7, SEALED))) == 7
    for state in (WAITING, BUILDING):
        assert not answers_yet(Offset(7, state))
        assert answers_from(Offset(7, state)) == NEVER
