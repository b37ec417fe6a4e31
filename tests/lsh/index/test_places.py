"""Places by number are what a dictionary would say, whichever numbers share a slot."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lsh.index.places import Places

numbers = st.one_of(
    st.integers(0, 2**31),
    st.integers(0, 50).map(lambda few: few << 20),  # they share one slot
    st.integers(-5, 5),
)


@given(st.lists(st.lists(numbers, max_size=40), max_size=8), st.lists(numbers, max_size=40))
def test_places_are_those_of_a_dictionary(rounds: list[list[int]], asked: list[int]) -> None:
    places, expected = Places(), dict[int, int]()
    for some in rounds:
        new = [number for number in dict.fromkeys(some) if number not in expected]
        at = range(len(expected), len(expected) + len(new))
        places.add(np.array(new, np.int64), np.array(at, np.int64))
        expected.update(zip(new, at, strict=True))
        wanted = [*asked, *expected]
        found = places.of(np.array(wanted, np.int64))
        assert found.tolist() == [expected.get(number, -1) for number in wanted]


def test_it_grows_with_what_is_added() -> None:
    places, drawn = Places(), np.random.default_rng(7).permutation(1 << 20)[:60_000]
    for first in range(0, len(drawn), 9_000):
        some = drawn[first : first + 9_000]
        places.add(some, np.arange(first, first + len(some)))
        assert places.of(drawn[: first + len(some)]).tolist() == [*range(first + len(some))]
    assert (places.of(np.arange(1 << 20, 1 << 21)) == -1).all()
