"""When the shards of a generation answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.bus import Offset, Record, TopicPartition
from worker.generations.turns import BUILDING, NEVER, WAITING, Turns, answers_from, answers_yet
from worker.wire import FrameError, HandOver

SEAT = TopicPartition("app.g2.shards", 0)
LAYOUT = "layout"


def record(offset: int, generation: int | None = None, layout: str = LAYOUT) -> Record:
    value = b"\x02" if generation is None else HandOver(layout, generation).encode()
    return Record("app.fingerprints", 0, offset, 0, None, value)


def test_a_shard_that_is_built_begins_at_the_hand_over_to_its_generation() -> None:
    turns = Turns(2, LAYOUT)
    log = [record(0), record(1, 1), record(2), record(3, 2), record(4)]
    turn = turns.of(SEAT, NEVER, log)
    assert [one.offset for one in turn.frames] == [0, 2, 4]
    assert turn.begun == 4
    assert not turns.ended


def test_a_shard_that_has_answered_passes_over_it() -> None:
    turn = Turns(2, LAYOUT).of(SEAT, 9, [record(2), record(3, 2)])
    assert ([one.offset for one in turn.frames], turn.begun, turn.passed) == ([2], None, 4)


def test_a_shard_ends_at_the_hand_over_to_a_later_generation() -> None:
    turns = Turns(2, LAYOUT)
    turn = turns.of(SEAT, 9, [record(8), record(9, 3), record(10)])
    assert [one.offset for one in turn.frames] == [8]
    assert turns.ended == {SEAT}
    assert turns.of(SEAT, 9, [record(11)]).frames == []
    turns.forget([SEAT])
    assert [one.offset for one in turns.of(SEAT, 9, [record(8)]).frames] == [8]


@given(st.lists(st.one_of(st.none(), st.integers(1, 4)), max_size=12), st.integers(0, 4), st.data())
def test_however_the_log_is_cut_the_frames_are_the_same(
    log: list[int | None], generation: int, data: st.DataObject
) -> None:
    records = [record(offset, number) for offset, number in enumerate(log)]
    whole = Turns(generation, LAYOUT).of(SEAT, NEVER, records).frames
    cut = data.draw(st.integers(0, len(records)))
    turns = Turns(generation, LAYOUT)
    parts = [turns.of(SEAT, NEVER, some).frames for some in (records[:cut], records[cut:])]
    assert [*parts[0], *parts[1]] == whole


@pytest.mark.parametrize("state", [WAITING, BUILDING])
def test_a_shard_that_was_never_answered_for_is_silent_wherever_it_is(state: str) -> None:
    assert not answers_yet(Offset(5, state))
    assert answers_from(Offset(5, state)) == NEVER


def test_a_plain_offset_is_where_a_shard_answers_from() -> None:
    assert answers_yet(5)
    assert answers_from(5) == 5


def test_a_hand_over_of_another_application_is_refused() -> None:
    with pytest.raises(FrameError, match="layout other"):
        Turns(0, LAYOUT).of(SEAT, 0, [record(0, 1, "other")])
