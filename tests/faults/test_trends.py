"""Slopes, gaps and waits, on made-up samples."""

from random import Random

import pytest

from tests.faults.timeline import longest_gap, longest_wait
from tests.faults.trends import Trend, slope_of
from tests.integration.audit import Arrival


def trend(values: list[float], limit: float) -> Trend:
    seconds = [10.0 * number for number in range(len(values))]
    slope = slope_of(seconds, values)
    return Trend("alpha", "memory, MB", seconds[-1] / 60, values[0], values[-1], slope, limit)


def test_a_steady_rise_is_found_whatever_a_few_samples_say() -> None:
    values = [100 + 0.2 * number for number in range(60)]
    for wild in (3, 20, 41, 55):
        values[wild] = 1_000
    found = trend(values, 1.0)
    assert found.slope.median == pytest.approx(1.2, abs=0.01)
    assert found.creeps


def test_noise_and_steps_up_and_down_are_no_rise() -> None:
    random = Random(1)
    assert not trend([100 + random.gauss(0, 5) for _ in range(60)], 0.5).creeps
    assert not trend([100 + 20 * (number // 6 % 2) for number in range(60)], 0.5).creeps


def test_a_process_that_is_new_may_rise() -> None:
    assert not trend([100 + 2.0 * number for number in range(20)], 0.5).creeps


def test_few_samples_have_no_trend() -> None:
    with pytest.raises(ValueError, match="2 samples"):
        slope_of([0, 1], [1, 2])


ARRIVALS = [Arrival(at, 1, wait) for at, wait in ((1, 0.1), (2, 0.1), (9, 7.5), (10, 0.2))]


def test_a_gap_counts_from_the_last_that_came_before_it() -> None:
    assert longest_gap(ARRIVALS, 3, 10) == 7
    assert longest_gap(ARRIVALS, 1.5, 2) == 1
    assert longest_gap(ARRIVALS, 1.5, 5) == 7
    assert longest_gap(ARRIVALS, 9.5, 30) == 20
    assert longest_gap([], 1, 4) == 3


def test_a_wait_counts_where_it_ends() -> None:
    assert longest_wait(ARRIVALS, 3, 10) == 7.5
    assert longest_wait(ARRIVALS, 0, 2) == 0.1
    assert longest_wait(ARRIVALS, 20, 30) == 0
