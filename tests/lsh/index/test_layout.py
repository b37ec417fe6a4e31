"""What is packed comes back."""

from __future__ import annotations

from itertools import accumulate, chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh.index.layout import (
    BEYOND,
    MOST_DOCUMENTS,
    bucket_lows,
    entries_of,
    number_before,
    pack_buckets,
    pack_records,
    unpack_bucket,
    unpack_record,
)
from lsh.index.records import Records

END = 3 * MOST_DOCUMENTS + 5
"""So far that numbers differ from their lowest 31 bits."""
numbers = st.integers(END - MOST_DOCUMENTS, END - 1) | st.just(BEYOND)


@given(buckets=st.lists(st.lists(numbers, max_size=4), max_size=6))
def test_buckets_come_back_one_by_one_and_together(buckets: list[list[int]]) -> None:
    lengths = np.array([len(bucket) for bucket in buckets], np.int64)
    packed = pack_buckets(lengths, np.array([*chain.from_iterable(buckets)], np.int64))
    assert [unpack_bucket(one, END) for one in packed] == buckets
    sizes, lows = bucket_lows(packed)
    entries = entries_of(lows, END)
    cuts = pairwise(accumulate(sizes.tolist(), initial=0))
    assert [entries[start:end].tolist() for start, end in cuts] == buckets


def test_a_number_is_the_last_one_before_the_end_with_these_bits() -> None:
    assert number_before(4, END) == 3 * MOST_DOCUMENTS + 4
    assert number_before(5, END) == 2 * MOST_DOCUMENTS + 5


def test_bytes_that_are_no_bucket_are_refused() -> None:
    with pytest.raises(ValueError, match="5 bytes are not whole entries"):
        bucket_lows([bytes(4), bytes(5)])


def records(*slots: int) -> list[bytes]:
    """Return records with as many slots each, of other values."""
    return [
        pack_records(
            np.array([number], np.uint64),
            np.array([number]),
            np.array([number], np.uint32),
            np.full((1, width), number, np.uint8),
            [b"id"],
            new=np.ones((1, number), bool),
        )[0]
        for number, width in enumerate(slots)
    ]


@pytest.mark.parametrize("slots", [(), (4, 4, 4), (4, 0, 4)])
def test_records_in_arrays_are_those_of_each(slots: tuple[int, ...]) -> None:
    packed = records(*slots)
    found = Records.unpacked(packed, 4)
    each = [unpack_record(record) for record in packed]
    assert [row.tobytes() for row in found.sketches] == [one.sketch.ljust(4, b"\0") for one in each]
    assert found.sequences.tolist() == [one.sequence for one in each]
    assert found.ids.tolist() == [one.id for one in each]


def test_a_record_with_other_slots_is_refused() -> None:
    with pytest.raises(ValueError, match="sketch hasn't 4 slots"):
        Records.unpacked(records(4, 2), 4)


@pytest.mark.parametrize("length", [0, 5, 22, 26])
def test_bytes_that_are_no_record_are_refused(length: int) -> None:
    whole, cut = records(4, 4)
    message = "sketch hasn't 4 slots" if length > 23 else f"^{length} bytes are not a record"
    if length:
        with pytest.raises(ValueError, match=message):
            Records.unpacked([whole, cut[:length]], 4)
    else:  # It was forgotten.
        assert Records.unpacked([whole, b""], 4).kept.tolist() == [True, False]
