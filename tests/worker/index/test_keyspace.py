"""The keys of a store: each kind in its range, the ranges in order, the header past them all."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.index.keyspace import (
    CELLS,
    COVERAGE,
    FILTERS,
    GONE,
    GROWN,
    HEADER,
    OPEN_RUN,
    PROGRESS,
    RECORDS,
    RENEWALS,
    RUNS,
    Progress,
    grown_key,
    number_key,
    of_run,
    page_key,
)

U64 = st.integers(0, 2**64 - 1)
U32 = st.integers(0, 2**32 - 1)
RANGES = (RENEWALS, GROWN, CELLS, FILTERS, OPEN_RUN, RECORDS)
OF_KEYS = (RENEWALS, GROWN, CELLS, OPEN_RUN, RECORDS)


def test_ranges_follow_one_another_and_end_before_all_else() -> None:
    assert all(before.high == after.low for before, after in pairwise(RANGES))
    assert min(COVERAGE, PROGRESS, RUNS, HEADER, GONE) >= RECORDS.high


@given(U64, U32, st.integers(0, 250))
def test_each_key_is_in_the_range_of_its_kind(key: int, number: int, column: int) -> None:
    bucket = bytes([column]) + key.to_bytes(8, "big")
    keys = (
        number_key(RENEWALS, number),
        grown_key(number, bucket),
        page_key(number, column, number),
        number_key(OPEN_RUN, number),
        number_key(RECORDS, number),
    )
    for packed, (low, high) in zip(keys, OF_KEYS, strict=True):
        assert low <= packed < high


@given(st.integers(0, 2**32 - 3), st.integers(0, 250), U32)
def test_each_page_is_in_the_range_of_its_run(run: int, slot: int, page: int) -> None:
    low, high = of_run(CELLS, run)
    assert low <= page_key(run, slot, page) < high == of_run(CELLS, run + 1).low


numbers = st.integers(-(2**63) + 1, 2**63 - 1)
clocks = st.none() | st.binary(min_size=8, max_size=90)


@given(numbers, numbers, numbers, clocks)
def test_progress_is_read_as_it_was_written(
    offset: int, documents: int, inserted: int, clock: bytes | None
) -> None:
    progress = Progress(offset, documents, inserted, clock)
    assert Progress.unpack(progress.pack()) == progress
    assert Progress.unpack(None) == Progress(0, 0, 0, None)
    with pytest.raises(ValueError, match="its progress can't be read"):
        Progress.unpack(progress.pack()[:-1])
