from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh import candidate_load, choose, s_curve, standard_error


@pytest.mark.parametrize(
    ("threshold", "slots", "expected"),
    [(0.8, 128, (18, 7)), (0.7, 128, (25, 5)), (0.9, 128, (11, 11)), (0.5, 256, (64, 4))],
)
def test_usual_choices(threshold: float, slots: int, expected: tuple[int, int]) -> None:
    assert choose(threshold, slots) == expected


@given(st.floats(0.2, 1.0), st.integers(16, 300), st.floats(0.5, 0.99))
def test_the_choice_reaches_the_recall_and_none_with_fewer_candidates_does(
    threshold: float, slots: int, recall: float
) -> None:
    bands, rows = choose(threshold, slots, recall)
    assert bands * rows <= slots
    assert s_curve(threshold, bands, rows) >= recall
    load = candidate_load(threshold, bands, rows)
    for other in range(1, slots + 1):
        if s_curve(threshold, slots // other, other) >= recall:
            assert candidate_load(threshold, slots // other, other) >= load


def test_no_more_bands_than_given_are_taken_and_rows_make_up_for_it() -> None:
    assert choose(0.2, 4_096)[0] > 250
    bands, rows = choose(0.2, 4_096, most_bands=250)
    assert bands <= 250
    assert s_curve(0.2, bands, rows) >= 0.98


@pytest.mark.parametrize("bad", [{"threshold": 0.0}, {"threshold": 1.1}, {"slots": 0}])
def test_numbers_out_of_range_are_refused(bad: dict[str, float]) -> None:
    given = {"threshold": 0.8, "slots": 128, **bad}
    with pytest.raises(ValueError, match=next(iter(bad))):
        choose(given["threshold"], int(given["slots"]))


def test_an_unreachable_recall_says_what_is_reachable() -> None:
    with pytest.raises(ValueError, match=r"recall: got 0.98, takes at most 0.8926"):
        choose(0.2, 10)


def test_the_curve_by_hand() -> None:
    assert float(s_curve(0.5, 1, 3)) == 0.125
    assert float(s_curve(0.5, 2, 1)) == 0.75
    np.testing.assert_array_equal(s_curve([0.0, 1.0], 18, 7), [0.0, 1.0])


def test_the_standard_error_by_hand() -> None:
    assert float(standard_error(0.5, 100)) == pytest.approx(0.05)
    assert float(standard_error(1.0, 100)) == 0
    assert float(standard_error(0.8, 128, 8)) == pytest.approx(0.03545, abs=1e-4)
    assert standard_error([0.1, 0.9], 64, 4).shape == (2,)
