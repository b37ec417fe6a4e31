"""A shard of one generation of the index, from the first frame to the hand-over to the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stages import (
    DOCS,
    LAYOUT,
    document,
    fingerprint,
    index,
    judge,
    no_watermarks,
    process,
    records,
    whole_log,
)
from worker.bus import Offset, Record, TopicPartition
from worker.generations.turns import BUILDING, WAITING
from worker.index.store import BandStore
from worker.stages.base import Burst
from worker.stages.index import Index
from worker.wire.codec import HandOver, decode
from worker.wire.matches import MatchFrame

SEAT = TopicPartition("app.g1.shards", 0)


def log(*generations: int | None) -> list[Record]:
    """Return frames of one document each, and hand-overs to generations."""
    stage = fingerprint()
    stage.adopt({DOCS: 0}, no_watermarks)
    found: list[Record] = []
    for offset, generation in enumerate(generations):
        value = None if generation is None else HandOver(LAYOUT, generation).encode()
        if value is None:
            number = sum(one is None for one in generations[:offset])
            burst = process(stage, [document(number)])
            (made,) = records(burst.records, "app.fingerprints")
            value = made.value
        found.append(Record(*SEAT, offset, 5_000, None, value))
    return found


def numbers(burst_records: object) -> list[int]:
    """Return the numbers of the frames that were answered."""
    assert isinstance(burst_records, list)
    return [decode(MatchFrame, one.value, LAYOUT).number for one in burst_records]


@pytest.fixture
def built(tmp_path: Path) -> Index[BandStore]:
    stage = index(tmp_path, generation=1)
    stage.adopt({SEAT: Offset(0, WAITING)}, whole_log)
    return stage


def test_a_shard_is_built_in_silence_and_answers_from_the_hand_over_on(
    built: Index[BandStore],
) -> None:
    burst = process(built, log(None, None, 1, None, None))
    assert numbers(burst.records) == [3, 4]
    assert burst.offsets == {SEAT: 5}
    built.committed()
    assert built.stores()[0].offset == 5


def test_its_progress_is_committed_about_once_a_second(built: Index[BandStore]) -> None:
    frames = log(None, None, None)
    assert not process(built, frames[:1]).offsets
    built.idle()
    assert process(built, frames[1:2]) == Burst([], {SEAT: Offset(2, BUILDING)})
    assert not process(built, frames[2:]).offsets
    built.idle()
    built.committed()
    assert process(built, []) == Burst([], {SEAT: Offset(3, BUILDING)})
    built.idle()
    assert not process(built, []).offsets


def test_a_shard_that_others_have_built_is_silent_from_its_first_frame_on(tmp_path: Path) -> None:
    stage = index(tmp_path, generation=1)
    stage.adopt({SEAT: Offset(1, BUILDING)}, whole_log)
    burst = process(stage, log(None, None, None, 1, None))
    assert (numbers(burst.records), burst.offsets) == ([4], {SEAT: 5})


def test_a_store_may_be_ahead_of_what_was_last_committed(built: Index[BandStore]) -> None:
    frames = log(None, None, None)
    process(built, frames[:2])
    assert built.adopt({SEAT: Offset(0, BUILDING)}, whole_log) == {SEAT: 2}
    assert not process(built, frames[2:]).offsets


def test_a_hand_over_that_nothing_follows_is_committed_and_passed(
    built: Index[BandStore],
) -> None:
    built.idle()
    burst = process(built, log(None, 1))
    assert burst == Burst([], {SEAT: 2})
    assert built.stores()[0].offset == 1
    built.committed()
    assert built.stores()[0].offset == 2
    assert built.status().restoring == {}


def test_what_is_rolled_back_is_met_again(built: Index[BandStore]) -> None:
    frames = log(None, 1, None)
    process(built, frames)
    assert built.adopt({SEAT: Offset(1, BUILDING)}, whole_log) == {SEAT: 1}
    burst = process(built, frames[1:])
    assert (numbers(burst.records), burst.offsets) == ([2], {SEAT: 3})


@pytest.mark.parametrize("committed", [2, 3])
def test_a_rebuilt_shard_passes_over_earlier_hand_overs(tmp_path: Path, committed: int) -> None:
    stage = index(tmp_path, generation=1)
    stage.adopt({SEAT: committed}, whole_log)
    assert not process(stage, log(None, 1)).offsets
    assert stage.stores()[0].offset == 2


def test_at_the_next_hand_over_it_ends_and_is_paused(tmp_path: Path) -> None:
    stage = index(tmp_path, generation=1)
    stage.adopt({SEAT: 0}, whole_log)
    frames = log(None, 2, None)
    burst = process(stage, frames)
    assert (numbers(burst.records), burst.offsets) == ([0], {SEAT: 1})
    assert burst.held == {SEAT}
    stage.committed()
    assert not process(stage, frames[2:]).offsets
    assert stage.status().restoring == {}


def test_after_a_roll_back_it_answers_again_what_came_before_its_end(tmp_path: Path) -> None:
    stage = index(tmp_path, generation=1)
    stage.adopt({SEAT: 0}, whole_log)
    frames = log(None, 2)
    for _ in range(2):
        burst = process(stage, frames)
        assert numbers(burst.records) == [0]
        stage.adopt({SEAT: 0}, whole_log)
        assert process(stage, []).held == frozenset()


def test_a_store_that_is_replaced_is_read_again_up_to_the_end(tmp_path: Path) -> None:
    stage = index(tmp_path, generation=1)
    stage.adopt({SEAT: 0}, whole_log)
    frames = log(None, 2)
    process(stage, frames[1:])
    stage._shards.replace(SEAT, "damaged")  # type: ignore[attr-defined]
    started = process(stage, frames)
    assert (started.starts, started.held, started.offsets) == ({SEAT: 0}, frozenset(), {})
    burst = process(stage, frames)
    assert numbers(burst.records) == [0]


def test_a_warm_shard_passes_over_hand_overs(tmp_path: Path) -> None:
    stage = index(tmp_path, generation=1)
    stage.adopt({SEAT: 0}, whole_log)
    judge(generation=1).keep_warm(0, stage.stores()[0], log(1, None, 2))
    assert stage.stores()[0].offset == 2
    judge(generation=1).keep_warm(0, stage.stores()[0], log(None, None, 2)[2:])
    assert stage.stores()[0].offset == 2
