from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lsh import (
    candidate_chance,
    candidate_load,
    choose,
    detection,
    s_curve,
    standard_error,
    steepest,
    steepest_approximately,
    sufficient_slots,
)
from lsh.tuning import FOUND, WRONG


@pytest.mark.parametrize(
    ("threshold", "slots", "expected"),
    [(0.8, 128, (18, 7)), (0.7, 128, (25, 5)), (0.9, 128, (11, 11)), (0.5, 256, (64, 4))],
)
def test_usual_choices(threshold: float, slots: int, expected: tuple[int, int]) -> None:
    assert choose(threshold, slots) == (slots, *expected)


@given(st.floats(0.2, 1.0), st.integers(16, 300), st.floats(0.5, 0.99))
def test_the_choice_reaches_the_recall_and_none_with_fewer_candidates_does(
    threshold: float, slots: int, recall: float
) -> None:
    assume(candidate_chance(threshold, slots, 1) >= recall)  # Otherwise there is no choice.
    _, bands, rows = choose(threshold, slots, recall)
    assert bands * rows <= slots
    assert candidate_chance(threshold, bands, rows) >= recall
    load = candidate_load(threshold, bands, rows)
    for other in range(1, slots + 1):
        if candidate_chance(threshold, slots // other, other) >= recall:
            assert candidate_load(threshold, slots // other, other) >= load


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (0.5, (256, 64, 4)),
        (0.6, (256, 51, 5)),
        (0.7, (256, 42, 6)),
        (0.8, (128, 18, 7)),
        (0.9, (128, 11, 11)),
        (1.0, (128, 1, 128)),
    ],
)
def test_without_slots_the_threshold_decides_how_many(
    threshold: float, expected: tuple[int, int, int]
) -> None:
    assert choose(threshold) == expected


@given(st.floats(0.2, 1.0), st.floats(0.5, 0.99))
def test_what_is_published_meets_the_constraints_and_half_the_slots_would_not(
    threshold: float, recall: float
) -> None:
    slots, bands, rows = choose(threshold, recall=recall)

    def holds(slots: int, bands: int, rows: int) -> bool:
        above, below = min(threshold + 0.05, 1.0), threshold - 0.1
        pairs = detection([above, below], threshold, slots, bands, rows, smooth=True)
        found = FOUND * float(candidate_chance(above, bands, rows))
        return bool(pairs[0] >= found and pairs[1] <= WRONG)

    assert holds(slots, bands, rows)
    assert slots == 128 or not holds(*choose(threshold, slots // 2, recall))


def test_a_higher_threshold_takes_no_more_slots() -> None:
    taken = [choose(percent / 100).slots for percent in range(20, 101)]
    assert taken == sorted(taken, reverse=True)
    assert set(taken) == {128, 256}


@pytest.mark.slow
def test_bands_and_rows_of_others_get_slots_by_the_threshold_alone() -> None:
    for percent in range(20, 101):
        threshold = percent / 100
        assert sufficient_slots(threshold) == choose(threshold).slots
    # Texts with nothing in common reach this by chance with fewer.
    assert sufficient_slots(0.001) == 4096


def test_no_number_of_slots_reaches_every_recall() -> None:
    with pytest.raises(ValueError, match=r"recall: got 0\.999999, takes at most"):
        choose(0.01, recall=0.999_999, most_bands=250)


def test_no_more_bands_than_given_are_taken_and_rows_make_up_for_it() -> None:
    assert choose(0.2, 4_096).bands > 250
    _, bands, rows = choose(0.2, 4_096, most_bands=250)
    assert bands <= 250
    assert candidate_chance(0.2, bands, rows) >= 0.98


@pytest.mark.parametrize("bad", [{"threshold": 0.0}, {"threshold": 1.1}, {"slots": 0}])
def test_numbers_out_of_range_are_refused(bad: dict[str, float]) -> None:
    given = {"threshold": 0.8, "slots": 128, **bad}
    with pytest.raises(ValueError, match=next(iter(bad))):
        choose(given["threshold"], int(given["slots"]))


def test_an_unreachable_recall_says_what_is_reachable() -> None:
    with pytest.raises(ValueError, match=r"recall: got 0.98, takes at most 0.8967"):
        choose(0.2, 10)


def test_the_curve_by_hand() -> None:
    assert float(s_curve(0.5, 1, 3)) == 0.125
    assert float(s_curve(0.5, 2, 1)) == 0.75
    np.testing.assert_array_equal(s_curve([0.0, 1.0], 18, 7), [0.0, 1.0])


@given(st.integers(1, 200), st.integers(1, 40))
def test_the_curve_rises_nowhere_faster_than_at_its_steepest_point(bands: int, rows: int) -> None:
    step = 1e-4
    middles = np.linspace(step, 1 - step, 2000)
    slopes = s_curve(middles + step, bands, rows) - s_curve(middles - step, bands, rows)
    at = min(max(steepest(bands, rows), step), 1 - step)
    low, high = s_curve([at - step, at + step], bands, rows)
    assert high - low >= slopes.max() * (1 - 1e-6) - 1e-12


def test_the_steepest_point_and_its_approximation_by_hand() -> None:
    assert steepest(18, 7) == pytest.approx(((6 / 7) / (18 - 1 / 7)) ** (1 / 7))
    assert (steepest(1, 7), steepest(9, 1), steepest(1, 1)) == (1.0, 0.0, 0.0)
    assert steepest_approximately(16, 4) == 0.5
    for bands, rows in ((18, 7), (64, 4), (11, 11)):
        at = steepest_approximately(bands, rows)
        assert at > steepest(bands, rows)
        assert 0.63 < float(s_curve(at, bands, rows)) < 0.66


def test_the_standard_error_by_hand() -> None:
    assert float(standard_error(0.5, 100)) == pytest.approx(0.05)
    assert float(standard_error(1.0, 100)) == 0
    assert float(standard_error(0.8, 128, 8)) == pytest.approx(0.03545, abs=1e-4)
    assert standard_error([0.1, 0.9], 64, 4).shape == (2,)
