"""What dates can't do: whatever some of them say, a copy a day later is found.

Each hour brings a new text and a copy of the one of a day ago, over forty days. The window has
thirty, and the numbers are the defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest

from lsh.index import NO_TIME, BucketRules, DocumentBatch
from tests.core.dictionaries import Driven
from tests.support.breadth import slow

HOUR = 3_600_000
DAY = 24 * HOUR
START = 1_550_000_000_000
DAYS = 40
RULES = BucketRules(threshold=0.8, window_ms=30 * DAY)
SLOTS = 16
_RUN_DOCUMENTS = 512
"""So few that eras are given back."""

Dates = Mapping[int, int | None]
"""Wrong ones, in ms, by the place of the document."""


class Feed:
    """The feed, and what a shard found in it."""

    def __init__(self, days: int = DAYS, start: int = START) -> None:
        self.texts = [number for hour in range(24 * days) for number in (hour, hour - 24)]
        self.times: list[int | None] = [start + place // 2 * HOUR for place in range(48 * days)]
        self.now: int | None = None
        self.older = 0
        self.leaps = 0

    def copies(self) -> dict[int, int]:
        """Return the places of copies, each with that of its original."""
        return {place: place - 49 for place in range(49, len(self.texts), 2)}

    def judge(self, wrong: Dates, rules: BucketRules = RULES, step: int = 97) -> set[int]:
        """Return the places of the documents that have matches."""
        times = [wrong.get(place, time) for place, time in enumerate(self.times)]
        shard, found = Driven(rules, run_documents=_RUN_DOCUMENTS), set[int]()
        for low, high in pairwise([*range(0, len(times), step), len(times)]):
            decision = shard.judge(_batch(self.texts[low:high], times[low:high], low))
            found |= {
                low + row for row in np.flatnonzero(np.diff(decision.matches.starts)).tolist()
            }
            self.older += decision.older
            self.leaps += decision.leap is not None
        self.now = shard.shard.now
        return found

    def missed(self, wrong: Dates) -> list[int]:
        """Return the places of the copies that were not found."""
        return sorted(self.copies().keys() - self.judge(wrong))


def _batch(texts: Sequence[int], times: Sequence[int | None], first: int) -> DocumentBatch:
    """Return documents; those with the same text have the same key and sketch."""
    numbers = np.array(texts, np.int64)
    sketches = np.stack([np.random.default_rng(abs(text)).bytes(SLOTS) for text in texts])
    return DocumentBatch(
        sequences=np.arange(first, first + len(texts), dtype=np.uint64),
        times=np.array([NO_TIME if time is None else time for time in times], np.int64),
        ids=[b"%d" % (first + row) for row in range(len(texts))],
        shingles=np.ones(len(texts), np.uint32),
        columns=[0],
        keys=numbers.astype(np.uint64)[None],
        sketches=sketches.view(np.uint8).reshape(-1, SLOTS),
    )


FUTURE, PAST = START + 20 * 365 * DAY, 31_536_000_000


@pytest.mark.parametrize("wrong", [FUTURE, PAST, 0, -1, -(10**12), START + 70 * DAY])
@pytest.mark.parametrize("places", [[0], [1919], range(1000, 1015), range(15)])
def test_one_wrong_date_or_fifteen_in_a_row_decide_nothing(
    wrong: int, places: Sequence[int]
) -> None:
    feed = Feed()
    assert feed.missed(dict.fromkeys(places, wrong)) == []
    assert feed.leaps == 0
    assert feed.now is not None
    assert feed.now <= START + DAYS * DAY


def some(share: float, seed: int, wrong: Callable[[np.random.Generator], int | None]) -> Dates:
    """Draw wrong dates for a share of the documents."""
    chance = np.random.default_rng(seed)
    return {place: wrong(chance) for place in range(48 * DAYS) if chance.random() < share}


@pytest.mark.parametrize("share", [0.01, slow(0.05)])
@pytest.mark.parametrize("seed", range(3))
def test_wrong_dates_both_ways_miss_nothing(share: float, seed: int) -> None:
    years = 365 * DAY
    feed = Feed()
    wrong = some(share, seed, lambda chance: START + int(chance.choice([-9, -1, 1, 9])) * years)
    assert feed.missed(wrong) == []


@pytest.mark.parametrize("share", [0.05, slow(0.3)])
def test_documents_without_a_date_are_found_and_find(share: float) -> None:
    assert Feed().missed(some(share, 1, lambda _: None)) == []


@pytest.mark.parametrize("days", [29.9, -10, -29.9])
def test_dates_within_the_window_count_for_at_least_a_window(days: float) -> None:
    """Also those of which copies come back: entries dated 29.9 days back used to go in hours."""
    feed = Feed()
    wrong = {place: START + place // 2 * HOUR - int(days * DAY) for place in range(0, 1920, 2)}
    assert feed.missed(wrong) == []


def test_what_is_dated_ahead_lives_for_a_window_after_that() -> None:
    feed = Feed(days=75)
    ahead = START + 20 * DAY
    feed.texts[48], feed.texts[48 * 49], feed.texts[48 * 56] = 10**6, 10**6, 10**7
    found = feed.judge({48: ahead})
    assert 48 * 49 in found, "it is dated day 20, and day 49 is within a window of that"
    again = Feed(days=75)
    again.texts[48], again.texts[48 * 52] = 10**6, 10**6
    assert 48 * 52 not in again.judge({48: ahead})


def test_what_is_older_than_the_window_is_forgotten_exactly() -> None:
    """Now is the time of the 16th latest document, eight hours back."""
    for days, remembered in ((30, True), (31, False)):
        feed = Feed()
        feed.texts[48 * 2], feed.texts[48 * (2 + days)] = 10**6, 10**6
        assert (48 * (2 + days) in feed.judge({})) == remembered


def test_sixteen_wrong_dates_in_a_row_forget_once_and_then_all_is_kept() -> None:
    feed = Feed()
    missed = feed.missed(dict.fromkeys(range(1000, 1016), FUTURE))
    assert missed == [place for place in feed.copies() if place - 49 < 1015 <= place]
    assert (feed.leaps, feed.now) == (1, FUTURE)
    assert feed.older == 1920 - 1016


def test_after_a_file_of_2099_all_is_as_before_once_the_feed_has_caught_up() -> None:
    """The feed goes on at once where the file was dated."""
    feed = Feed(days=100)
    wrong: dict[int, int | None] = dict.fromkeys(range(960, 1024), FUTURE)
    wrong |= {place: FUTURE + (place - 1024) // 2 * HOUR for place in range(1024, 4800)}
    feed.texts[1025 + 48 * 29], feed.texts[1025 + 48 * 31 + 40] = 10**6, 10**6
    feed.texts[1025], feed.texts[1027] = 10**6, 10**7
    feed.texts[1027 + 48 * 35] = 10**7
    found = feed.judge(wrong)
    assert 1025 + 48 * 29 in found
    assert 1027 + 48 * 35 not in found
    assert feed.older == 0


def test_after_months_of_silence_fifteen_are_judged_by_the_old_now() -> None:
    feed = Feed(days=10)
    count = len(feed.texts)
    feed.texts += [10**6 + number for number in range(14)] + [200, 10**7, 201]
    feed.times += [START + 200 * DAY + number for number in range(17)]
    found = feed.judge({})
    assert count + 14 in found
    assert count + 16 not in found
    assert feed.leaps == 1


def test_months_in_another_order_lose_few_copies() -> None:
    """As files are read whose names are sorted as text: 1, 10, 11, 12, 2.

    The first fifteen documents of month 10 count as of the now before that leap.
    """
    feed, month = Feed(days=360), 48 * 30
    months = (0, 9, 10, 11, 1, 2, 3, 4, 5, 6, 7, 8)
    order = [of * month + place for of in months for place in range(month)]
    at = {place: number for number, place in enumerate(order)}
    inside = {at[copy]: at[first] for copy, first in feed.copies().items()
              if copy // month == first // month}  # fmt: skip
    feed.texts = [feed.texts[place] for place in order]
    feed.times = [feed.times[place] for place in order]
    found = feed.judge({})
    missed = {first for copy, first in inside.items() if copy not in found}
    assert missed == {month + place for place in range(0, 15, 2)}
    assert feed.leaps == 1
    assert feed.older > 7 * month


@pytest.mark.parametrize("count", [1, 31])
def test_fewer_than_32_expire_nothing(count: int) -> None:
    times = [START + number * 1_000 * DAY for number in range(count)]
    shard = Driven(RULES)
    for number, time in enumerate(times):
        decision = shard.judge(_batch([7], [time], number))
        assert bool(len(decision.matches.sequences)) == (number > 0)
    assert shard.shard.now is None


@pytest.mark.parametrize("start", [0, -DAY, -(10**13)])
def test_feeds_of_before_1970_are_feeds(start: int) -> None:
    """Zero is a time like any other, and so is what is below it."""
    feed = Feed(start=start)
    feed.texts[48 * 2], feed.texts[48 * 33] = 10**6, 10**6
    wanted = feed.copies().keys() - {48 * 2 + 49, 48 * 33 + 49}
    found = feed.judge({})
    assert found >= wanted
    assert 48 * 33 not in found
