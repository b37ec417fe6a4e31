"""Bursts follow what the link can take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.loop.transactions import Pace

TIMEOUT = 4.0


def through(pace: Pace, rate: float, bursts: int = 200) -> list[tuple[float, bool]]:
    """Send full bursts over a link of so many bytes a second; give what each took."""
    taken = []
    for _ in range(bursts):
        seconds = 0.02 + pace.size / rate
        committed = seconds < TIMEOUT
        pace.ended(min(seconds, TIMEOUT), committed=committed, filled=True)
        taken.append((seconds, committed))
    return taken


def test_a_fast_link_soon_gets_all_that_the_settings_allow() -> None:
    pace = Pace(4_000, 16 << 20, TIMEOUT)
    assert (pace.records, pace.size) == (250, 1 << 20)
    through(pace, 500e6, 25)
    assert (pace.records, pace.size) == (4_000, 16 << 20)


@given(st.floats(min_value=20e3, max_value=1e9))
def test_any_link_that_can_carry_the_least_is_found_and_not_overrun_again(rate: float) -> None:
    taken = through(Pace(4_000, 16 << 20, TIMEOUT), rate)
    first = next(number for number, (_, committed) in enumerate(taken) if committed)
    assert first <= 6
    assert all(committed for _, committed in taken[first:])
    # And what is left of the link is used: a burst fills at least an eighth of its time.
    seconds = [seconds for seconds, _ in taken[100:]]
    assert min(seconds) >= min(TIMEOUT / 8, 0.02 + (16 << 20) / rate) * 0.9


def test_a_quota_that_lets_ten_seconds_pass_at_once_is_not_overrun() -> None:
    """As Kafka counts: over ten seconds, then whoever had too much waits for all of it."""
    pace = Pace(4_000, 16 << 20, TIMEOUT)
    rate, credit, clock, sent = 1e6, 10e6, 0.0, 0
    while clock < 120:
        credit -= pace.size
        seconds = 0.02 + max(0.0, -credit / rate)
        assert seconds < TIMEOUT
        sent += pace.size
        clock += seconds
        throttled = credit < 0
        credit = min(10e6, credit + seconds * rate)
        pace.ended(seconds, committed=True, filled=True, throttled=throttled)
    assert sent > 0.95 * rate * clock


def test_the_size_at_which_a_quota_applied_is_approached_slowly() -> None:
    pace = Pace(4_000, 16 << 20, TIMEOUT)
    pace.ended(TIMEOUT, committed=False, filled=True, throttled=True)
    applied = pace.size
    pace.ended(0.02, committed=True, filled=True, throttled=True)
    assert pace.size == pytest.approx(1.02 * applied, rel=0.01)
    for _ in range(10):
        pace.ended(0.02, committed=True, filled=True)
    assert pace.size < 1.3 * applied
    # Brokers that are away meanwhile don't teach it a lower one.
    for _ in range(3):
        pace.ended(TIMEOUT, committed=False, filled=True)
    assert pace.size < applied / 3
    for _ in range(12):
        pace.ended(0.02, committed=True, filled=True)
    assert applied < pace.size < 1.6 * applied
    through(pace, 500e6, 300)
    assert (pace.records, pace.size) == (4_000, 16 << 20)


@pytest.mark.parametrize("between", [0, 1, 3])
def test_brokers_that_were_away_leave_no_small_bursts_behind(between: int) -> None:
    pace = Pace(4_000, 16 << 20, TIMEOUT)
    for _ in range(20):
        pace.ended(TIMEOUT, committed=False, filled=True)
        for _ in range(between):
            pace.ended(0.5, committed=True, filled=True)
    assert pace.size <= 256 << 10
    through(pace, 500e6, 25)
    assert (pace.records, pace.size) == (4_000, 16 << 20)


def test_bursts_grow_where_every_transaction_takes_long_whatever_its_size() -> None:
    pace = Pace(4_000, 16 << 20, TIMEOUT)
    for _ in range(5):
        pace.ended(TIMEOUT, committed=False, filled=True)
    for _ in range(50):
        pace.ended(0.45 * TIMEOUT, committed=True, filled=True)
    assert (pace.records, pace.size) == (4_000, 16 << 20)


def test_a_burst_that_was_small_says_nothing_about_large_ones() -> None:
    pace = Pace(4_000, 16 << 20, TIMEOUT)
    for _ in range(100):
        pace.ended(0.02, committed=True, filled=pace.filled(3, 5_000))
    assert pace.records == 250
    assert pace.filled(125, 0)
    assert pace.filled(0, 1 << 19)


def test_an_abort_that_was_quick_is_not_about_size() -> None:
    pace = Pace(4_000, 16 << 20, TIMEOUT)
    pace.ended(0.1, committed=False, filled=True)
    assert pace.records == 250
    pace.ended(2.5, committed=False, filled=True)
    assert pace.size == 256 << 10


def test_no_burst_is_smaller_than_what_any_link_carries() -> None:
    pace = Pace(4_000, 16 << 20, TIMEOUT)
    for _ in range(20):
        pace.ended(TIMEOUT, committed=False, filled=True)
    assert (pace.records, pace.size) == (100, 64 << 10)
    assert (Pace(1, 1, TIMEOUT).records, Pace(1, 1, TIMEOUT).size) == (1, 1)
