"""Numbers in order, compared with what plain Python says."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lsh.ordered import first_of_each, last_of_each, lengths, without_repeats

NUMBERS = st.lists(st.integers(0, 4) | st.integers(0, 2**64 - 1), max_size=20)


@given(NUMBERS)
def test_the_first_and_the_last_of_equal_numbers_are_found(numbers: list[int]) -> None:
    numbers.sort()
    firsts = [place for place, one in enumerate(numbers) if numbers.index(one) == place]
    lasts = [place for place, one in enumerate(numbers) if one not in numbers[place + 1 :]]
    ordered = np.array(numbers, np.uint64)
    assert np.flatnonzero(first_of_each(ordered)).tolist() == firsts
    assert np.flatnonzero(last_of_each(ordered)).tolist() == lasts


@given(NUMBERS)
def test_each_number_is_left_once(numbers: list[int]) -> None:
    given_ = np.array(numbers, np.uint64)
    assert without_repeats(given_).tolist() == sorted(set(numbers))
    assert without_repeats(given_).dtype == np.uint64
    assert given_.tolist() == numbers


@given(st.lists(st.integers(0, 50), max_size=10))
def test_parts_are_as_long_as_from_one_start_to_the_next(numbers: list[int]) -> None:
    edges = sorted(numbers)
    starts, end = np.array(edges[:-1], np.int64), max(edges, default=0)
    expected = [after - before for before, after in pairwise(edges)]
    assert lengths(starts, end).tolist() == expected
    assert starts.tolist() == edges[:-1]
