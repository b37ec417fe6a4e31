"""Numbers in order, compared with what plain Python says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lsh.arrays import first_of_each, without_repeats

NUMBERS = st.lists(st.integers(0, 4) | st.integers(0, 2**64 - 1), max_size=20)


@given(NUMBERS)
def test_the_first_of_equal_numbers_is_found(numbers: list[int]) -> None:
    numbers.sort()
    firsts = [place for place, one in enumerate(numbers) if numbers.index(one) == place]
    ordered = np.array(numbers, np.uint64)
    assert np.flatnonzero(first_of_each(ordered)).tolist() == firsts


@given(NUMBERS)
def test_each_number_is_left_once(numbers: list[int]) -> None:
    given_ = np.array(numbers, np.uint64)
    assert without_repeats(given_).tolist() == sorted(set(numbers))
    assert without_repeats(given_).dtype == np.uint64
    assert given_.tolist() == numbers
