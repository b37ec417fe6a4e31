"""The keys of a store: each kind in its range, the ranges in order, the header past them all."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh.index import BucketKeys, Clock
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
    Place,
    Progress,
    filter_key,
    grown_key,
    grown_place,
    number_key,
    of_run,
    page_key,
    place_in,
)

U64 = st.integers(0, 2**64 - 1)
U32 = st.integers(0, 2**32 - 1)
RANGES = (RENEWALS, GROWN, CELLS, FILTERS, OPEN_RUN, RECORDS)


def test_ranges_follow_one_another_and_end_before_all_else() -> None:
    assert all(before.high == after.low for before, after in pairwise(RANGES))
    assert min(COVERAGE, PROGRESS, RUNS, HEADER, GONE) >= RECORDS.high


@given(U64, U32, st.integers(0, 250))
def test_each_key_is_in_the_range_of_its_kind(key: int, number: int, column: int) -> None:
    (bucket,) = BucketKeys(np.array([column], np.uint8), np.array([key], np.uint64)).packed()
    keys = (
        number_key(RENEWALS, number),
        grown_key(number, bucket),
        page_key(number, column, number),
        filter_key(number, column, number),
        number_key(OPEN_RUN, number),
        number_key(RECORDS, number),
    )
    for packed, (low, high) in zip(keys, RANGES, strict=True):
        assert low <= packed < high
    assert grown_place(grown_key(number, bucket)) == (number, bucket)


@given(st.integers(0, 2**32 - 3), st.integers(0, 250), U32)
def test_each_page_is_in_the_range_of_its_run(run: int, slot: int, page: int) -> None:
    for kind, made in ((CELLS, page_key), (FILTERS, filter_key)):
        key = made(run, slot, page)
        low, high = of_run(kind, run)
        assert low <= key < high == of_run(kind, run + 1).low
        assert place_in(key) == Place(run, slot, page)


def test_another_key_is_no_place() -> None:
    with pytest.raises(ValueError, match="is not the key of a grown bucket"):
        grown_place(b"\xfa12")
    with pytest.raises(ValueError, match="is not the key of a page"):
        place_in(b"\xfb123")


numbers = st.integers(-(2**63) + 1, 2**63 - 1)
some = st.lists(numbers, max_size=70).map(tuple)
clocks = st.builds(Clock, st.none(), some) | st.builds(
    Clock, numbers, some, st.lists(numbers, min_size=1, max_size=70).map(tuple)
)


@given(numbers, numbers, numbers, clocks)
def test_progress_is_read_as_it_was_written(
    offset: int, documents: int, inserted: int, clock: Clock
) -> None:
    progress = Progress(offset, documents, inserted, clock)
    assert Progress.unpack(progress.pack()) == progress
    assert Progress.unpack(None) == Progress(0, 0, 0, Clock())
    with pytest.raises(ValueError, match="its progress can't be read"):
        Progress.unpack(progress.pack()[:-1])
