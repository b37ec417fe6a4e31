"""Records as columns."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from worker.bus import Header, Outgoing, OutgoingBatch, Record, RecordBatch, TopicPartition, each

HEADERS: tuple[Header, ...] = (("a", b"1"), ("b", None))
SOME = [
    Record("in", 0, 4, 100, b"key", b"one", HEADERS),
    Record("in", 0, 5, -1, None, None),
    Record("in", 0, 9, 102, b"", b"three", HEADERS[:1]),
]

_BYTES = st.none() | st.binary(max_size=3)
_RECORDS = st.lists(
    st.builds(
        Record,
        topic=st.sampled_from(["in", "other"]),
        partition=st.integers(0, 1),
        offset=st.integers(0, 1 << 60),
        timestamp=st.integers(-1, 1 << 60),
        key=_BYTES,
        value=_BYTES,
        headers=st.sampled_from([(), HEADERS, HEADERS[:1]]),
        leader_epoch=st.just(-1),
    )
)


def batch(records: list[Record]) -> RecordBatch:
    (made,) = RecordBatch.of(records)
    return made


@given(_RECORDS)
def test_batches_have_the_records_in_their_order(records: list[Record]) -> None:
    batches = RecordBatch.of(records)
    assert [record for batch in batches for record in batch] == records
    assert all(len(batch) == len(list(batch)) > 0 for batch in batches)
    runs = [one.place for one in batches]
    assert all(one != following for one, following in pairwise(runs))


def test_a_batch_is_the_columns_of_a_partition() -> None:
    made = batch(SOME)
    assert made.place == TopicPartition("in", 0)
    assert (made.offsets.dtype.name, made.timestamps.dtype.name) == ("int64", "int64")
    assert (made.offsets.tolist(), made.timestamps.tolist()) == ([4, 5, 9], [100, -1, 102])
    assert (made.keys, made.values) == ([b"key", None, b""], [b"one", None, b"three"])
    assert made.headers == [HEADERS, (), HEADERS[:1]]
    assert (len(made), made.end, made.size) == (3, 10, len(b"keyonethree"))
    assert made.record(2) == SOME[2]
    assert type(made.record(2).offset) is int


def test_a_batch_without_any_headers_has_no_column_of_them() -> None:
    made = batch([record._replace(headers=()) for record in SOME])
    assert made.headers is None
    assert made.record(0).headers == ()
    assert made.rows(0, 2).headers is None
    assert made.only(np.array([True, False, False])).headers is None


def test_the_leader_epoch_is_not_kept() -> None:
    assert list(batch([SOME[0]._replace(leader_epoch=7)])) == [SOME[0]]


@given(st.integers(0, 3), st.integers(0, 3))
def test_rows_are_a_part_of_them(low: int, high: int) -> None:
    made = batch(SOME)
    part = made.rows(low, high)
    assert list(part) == SOME[low:high]
    assert part.place == made.place
    assert list(made) == SOME


@given(st.lists(st.booleans(), min_size=3, max_size=3))
def test_only_those_are_left(kept: list[bool]) -> None:
    made = batch(SOME)
    assert list(made.only(np.array(kept))) == [
        record for record, stays in zip(SOME, kept, strict=True) if stays
    ]
    assert list(made) == SOME


def test_what_is_written_is_the_same_one_by_one() -> None:
    single = Outgoing("out", 1, b"k", None, HEADERS, 5)
    many = OutgoingBatch("out", None, [b"a", None], [b"1", b"2"], [[], [*HEADERS]], [None, 7])
    records = [
        Outgoing("out", None, b"a", b"1"),
        Outgoing("out", None, None, b"2", HEADERS, 7),
    ]
    assert list(many.records()) == records
    assert list(each([single, many, single])) == [single, *records, single]
    assert list(OutgoingBatch.of(single).records()) == [single]
