"""Slopes, gaps and waits, on made-up samples."""

from itertools import accumulate
from random import Random

import pytest

from chaos.samples import LIMITS, STORES, trends_of
from chaos.timeline import longest_gap, longest_wait
from chaos.trends import Trend, slope_of, trend_of
from tests.support.audit import Arrival


def trend(values: list[float], limit: float) -> Trend:
    """Samples of every 10 s."""
    found = trend_of("alpha", "memory, MB", limit, [10.0 * at for at in range(len(values))], values)
    assert found is not None
    return found


def test_a_steady_rise_is_found_whatever_a_few_samples_say() -> None:
    values = [100 + 0.2 * number for number in range(150)]
    for wild in (3, 20, 41, 55, 120):
        values[wild] = 1_000
    found = trend(values, 1.0)
    assert found.slope.median == pytest.approx(1.2, abs=0.01)
    assert found.creeps


def test_a_rise_in_steps_is_found() -> None:
    """A client of seven threads, left behind every ten minutes, in three quarters of an hour."""
    assert trend([60.0 + 7 * (number // 60) for number in range(270)], 0.1).creeps


def test_a_rise_just_beyond_the_limit_is_found_in_what_a_heap_does() -> None:
    random = Random(5)
    heap = accumulate((random.gauss(0, 1) for _ in range(270)), lambda at, by: 0.8 * at + by)
    assert trend([120 + noise + 0.8 * at / 6 for at, noise in enumerate(heap)], 0.5).creeps


def test_noise_and_steps_up_and_down_are_no_rise() -> None:
    random = Random(1)
    assert not trend([100 + random.gauss(0, 5) for _ in range(270)], 0.5).creeps
    assert not trend([100 + 20 * (number // 6 % 2) for number in range(270)], 0.5).creeps


def test_brokers_that_take_their_threads_with_them_are_no_rise() -> None:
    away = [range(4, 9), range(130, 133), range(200, 203)]
    values = [40.0 if any(at in some for some in away) else 60.0 for at in range(270)]
    assert not trend(values, 0.1).creeps


def test_what_moves_once_is_no_rise() -> None:
    assert not trend([60.0] * 130 + [61.0] * 140, 0.1).creeps


def test_what_is_short_does_not_tell() -> None:
    """It rises by a thread in eight minutes."""
    short = trend([60.0 + at // 12 / 4 for at in range(48)], 0.1)
    assert short.slope.low > short.limit
    assert not short.tells
    assert not short.creeps
    assert trend_of("alpha", "threads", 0.1, [0.0, 10.0, 230.0], [60.0, 60.0, 61.0]) is None


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


def test_handles_and_threads_are_compared_at_one_number_of_open_shards() -> None:
    """Another number of shards takes other handles, and is no leak; what rises beside it is."""

    def series(leak: float) -> list[tuple[float, dict[str, float]]]:
        found = []
        for number in range(360):
            stores = 3.0 if 200 <= number < 300 else 1.0
            taken = dict.fromkeys(LIMITS, 50 + 20 * stores + leak * number)
            found.append((10.0 * number, taken | {STORES: stores}))
        return found

    def creeping(leak: float) -> set[str]:
        return {trend.what for trend in trends_of("alpha", series(leak)) if trend.creeps}

    assert not {"file handles", "threads"} & creeping(0.0)
    assert {"file handles", "threads"} <= creeping(0.1)
