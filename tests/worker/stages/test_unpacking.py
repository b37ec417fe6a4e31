"""Which documents an answer's rows are about."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from worker.stages.unpacking import Judged

_OFFSETS = st.lists(st.integers(0, 30), unique=True).map(sorted)


def judged(offsets: list[int]) -> Judged:
    return Judged(np.array(offsets, np.int64), np.array(offsets, np.uint64) + 100, 1_000)


def described(these: Judged) -> list[tuple[int, int, int]]:
    """Return offset, checksum and sequence number of each."""
    numbers = range(these.sequence, these.sequence + len(these.offsets))
    return list(zip(these.offsets.tolist(), these.checksums.tolist(), numbers, strict=True))


@given(_OFFSETS, st.integers(0, 31))
def test_a_split_keeps_each_with_its_number(offsets: list[int], until: int) -> None:
    whole = judged(offsets)
    before, after = map(described, whole.split(until))
    assert before + after == described(whole)
    assert all(offset < until for offset, _, _ in before)
    assert all(offset >= until for offset, _, _ in after)


@given(_OFFSETS, _OFFSETS)
def test_each_offset_has_its_row_if_it_was_judged(offsets: list[int], asked: list[int]) -> None:
    rows, there = judged(offsets).rows_of(np.array(asked, np.int64))
    assert there.tolist() == [offset in offsets for offset in asked]
    assert rows.tolist() == [sum(one < offset for one in offsets) for offset in asked]
