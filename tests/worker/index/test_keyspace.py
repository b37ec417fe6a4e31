"""The keys of a store: each kind in its range, the ranges in order, the header past them all."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lsh.index.layout import bucket_keys
from worker.index.keyspace import (
    BUCKETS,
    COVERAGE,
    FILTER_ADDED,
    FILTER_COPY,
    FILTER_SIZES,
    HEADER,
    PROGRESS,
    RECORDS,
    Progress,
    added_key,
    added_number,
    copy_key,
    is_bucket,
    record_key,
    record_keys,
    sequence_of,
)

U64 = st.integers(0, 2**64 - 1)
RANGES = (BUCKETS, FILTER_COPY, FILTER_ADDED, RECORDS)


def test_ranges_follow_one_another_and_end_at_the_header() -> None:
    assert all(before.high == after.low for before, after in pairwise(RANGES))
    assert RECORDS.high == HEADER
    assert min(COVERAGE, PROGRESS, FILTER_SIZES, HEADER) == HEADER


@given(U64, U64, st.integers(0, 251), st.integers(0, 2**16 - 1))
def test_each_key_is_in_the_range_of_its_kind(
    sequence: int, number: int, column: int, chunk: int
) -> None:
    (bucket,) = bucket_keys([column], np.array([[number]], np.uint64)).tolist()
    keys = (bucket, copy_key(chunk), added_key(number), record_key(sequence))
    for key, (low, high) in zip(keys, RANGES, strict=True):
        assert low <= key < high
    assert [is_bucket(key) for key in (*keys, HEADER)] == [True, False, False, False, False]
    assert sequence_of(record_key(sequence)) == sequence
    assert added_number(added_key(number)) == number


@given(st.lists(U64, max_size=5))
def test_keys_of_many_records_are_those_of_each(sequences: list[int]) -> None:
    assert record_keys(np.array(sequences, np.uint64)) == list(map(record_key, sequences))


@given(*[st.integers(-(2**63), 2**63 - 1)] * 3)
def test_progress_is_read_as_it_was_written(offset: int, now: int, documents: int) -> None:
    progress = Progress(offset, now, documents)
    assert Progress.unpack(progress.pack()) == progress
    assert Progress.unpack(progress.pack()[:16]) == progress._replace(documents=0)
    assert Progress.unpack(None) == Progress(0, 0, 0)
