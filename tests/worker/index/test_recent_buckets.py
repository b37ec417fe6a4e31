"""Grown buckets that were read or written lately are at hand, and there are never too many."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh.index import BucketKeys
from lsh.index.layout import BEYOND, lows_of
from tests.support.filling import RULES, random_documents
from worker.index.reading import Standing
from worker.index.recent_buckets import Grown, RecentBuckets
from worker.index.store import BandStore, StoreOptions

MOST = 100_000
WIDTH = 8

Bucket = tuple[int, list[int]]
"""An era, and entries."""


def keys_of(numbers: list[int]) -> BucketKeys:
    """Return different keys, of which some differ in their columns alone."""
    spread = np.array(numbers, np.uint64)
    return BucketKeys(
        (spread % np.uint64(3)).astype(np.uint8),
        spread // np.uint64(3) * np.uint64(0xD1B54A32D192ED03),
    )


def put(recent: RecentBuckets, buckets: dict[int, Bucket]) -> None:
    eras = np.array([era for era, _ in buckets.values()], np.int64)
    sizes = np.array([len(entries) for _, entries in buckets.values()], np.int64)
    entries = np.array([one for _, some in buckets.values() for one in some], np.int64)
    recent.put(keys_of(list(buckets)), Grown(eras, sizes, lows_of(entries)))


def got(recent: RecentBuckets, numbers: list[int]) -> dict[int, Bucket]:
    here, grown = recent.get(keys_of(numbers))
    ends = np.cumsum(grown.sizes)
    parts = np.split(grown.lows, ends[:-1]) if len(ends) else []
    found = [number for number, is_here in zip(numbers, here, strict=True) if is_here]
    return {
        number: (era, part.tolist())
        for number, era, part in zip(found, grown.eras.tolist(), parts, strict=True)
    }


def numbered(first: int, end: int) -> dict[int, Bucket]:
    return {number: (number % 5, [number] * WIDTH) for number in range(first, end)}


@given(
    st.lists(
        st.dictionaries(
            st.integers(0, 40),
            st.tuples(st.integers(0, 3), st.lists(st.integers(0, 99), min_size=1, max_size=70)),
            max_size=12,
        ),
        max_size=12,
    ),
    st.lists(st.integers(0, 40), unique=True, max_size=4),
    st.sampled_from([3_000, 30_000, 1 << 20]),
)
def test_what_is_here_is_what_was_put_last(
    puts: list[dict[int, Bucket]], gone: list[int], most: int
) -> None:
    recent, expected = RecentBuckets(most), dict[int, Bucket]()
    for some in puts:
        put(recent, some)
        expected |= some
        recent.forget(keys_of(gone))
        for number in gone:
            expected.pop(number, None)
        found = got(recent, list(range(41)))
        assert found.items() <= expected.items()
        if most > 100_000:
            assert found == {number: one for number, one in expected.items() if len(one[1]) <= 64}


def test_what_was_asked_for_lately_is_here_and_there_are_never_too_many() -> None:
    recent = RecentBuckets(MOST)
    always = numbered(0, 10)
    put(recent, always)
    for first in range(10, 15_000, 50):
        some = numbered(first, first + 50)
        put(recent, some)
        assert len(got(recent, list(always))) >= 9
        assert got(recent, list(some)).items() <= some.items()
        assert len(got(recent, list(some))) >= 48
        assert recent.size_bytes <= MOST
    room = MOST // (8 + 1 + 4 + 8 + 1 + 4 * WIDTH)
    assert 0.95 * room <= len(got(recent, list(range(15_000)))) <= room


def test_what_was_not_asked_for_makes_room() -> None:
    recent = RecentBuckets(MOST)
    put(recent, numbered(0, 900))
    asked = list(range(400))
    for first in range(1_000, 9_000, 100):
        got(recent, asked)
        put(recent, numbered(first, first + 100))
    assert len(got(recent, asked)) > 330
    assert len(got(recent, list(range(400, 900)))) < 25


def test_wider_buckets_leave_room_for_fewer() -> None:
    recent = RecentBuckets(MOST)
    put(recent, numbered(0, 1_000))
    wide = {number: (1, [number] * 33) for number in range(1_000, 1_100)}
    put(recent, wide)
    assert got(recent, list(wide)) == wide
    assert recent.size_bytes <= MOST
    left = got(recent, list(range(1_000)))
    assert 0 < len(left) < 600
    assert left.items() <= numbered(0, 1_000).items()


@pytest.mark.parametrize("share", [100, 99, 81])
def test_with_a_little_less_memory_all_stay(share: int) -> None:
    recent = RecentBuckets(MOST)
    put(recent, numbered(0, 1_500))
    before = got(recent, list(range(1_500)))
    recent.limit(recent.size_bytes * share // 100)
    assert got(recent, list(range(1_500))) == before


def test_with_less_memory_those_stay_that_were_asked_for_last() -> None:
    recent = RecentBuckets(MOST)
    put(recent, numbered(0, 1_500))
    last = list(range(200, 260))
    got(recent, last)
    recent.limit(MOST // 5)
    assert recent.size_bytes <= MOST // 5
    assert len(got(recent, last)) >= 58
    put(recent, numbered(3_000, 3_001))
    assert got(recent, [3_000]) == numbered(3_000, 3_001)


@pytest.mark.broad
def test_a_large_table_grows_and_shrinks_by_a_part_at_a_time() -> None:
    recent, at_once = RecentBuckets(400 * MOST), 9 << 20
    everything, sizes = numbered(0, 150_000), list[int]()
    for first in range(0, 150_000, 1_000):
        put(recent, numbered(first, first + 1_000))
        sizes.append(recent.size_bytes)
    assert sizes[-1] > 18_000_000
    kept = got(recent, list(everything))
    assert len(kept) > 140_000
    assert kept.items() <= everything.items()
    while len(sizes) < 160:
        recent.limit(100 * MOST)
        sizes.append(recent.size_bytes)
    assert sizes[-1] <= 125 * MOST
    assert max(abs(later - former) for former, later in pairwise(sizes)) <= at_once
    left = got(recent, list(everything))
    assert len(left) > 0.8 * len(kept)
    assert left.items() <= kept.items()
    assert recent._count == len(left)


def test_what_has_grown_is_known_whichever_reading_met_it() -> None:
    standing = Standing()
    for some in ([1, 2], [], [3, 4, 5]):
        standing.note_in_memory(keys_of(some))
    standing.note_cells(keys_of([4, 6]).packed())
    standing.note_grown(keys_of([7]).packed())
    for _ in range(2):
        celled, grown = standing.of(keys_of([2, 3, 4, 6, 7, 8]))
        assert celled.tolist() == [False, False, True, True, False, False]
        assert grown.tolist() == [True, True, True, False, True, False]
    assert [part.tolist() for part in Standing().of(keys_of([1]))] == [[False], [False]]


def test_what_an_era_had_that_was_dropped_is_nothing(tmp_path: Path) -> None:
    """Also if all that is left of it in memory is the note that there are finer buckets."""
    store = BandStore(tmp_path / "s", {"test": 1}, options=StoreOptions(window_ms=80))
    rules = replace(RULES, window_ms=80)
    for offset in range(30):
        decision = store.decide(random_documents(10, first=store.inserted), rules)
        store.apply(decision, offset=offset, documents=10)
    eras = store._cells.list.eras
    keys = BucketKeys(np.zeros(1, np.uint8), np.arange(7, 8, dtype=np.uint64))
    for era, kept in ((eras.kept[0].number - 1, []), (eras.kept[0].number, [[BEYOND]])):
        some = np.array([era]), np.array([1]), lows_of(np.array([BEYOND]))
        store._grown.put(keys, Grown(*some))
        assert store.buckets(keys).lists() == kept
    store.close()


def test_a_flood_finds_its_buckets_in_memory(tmp_path: Path) -> None:
    """The buckets that a batch has written aren't read again for the next one."""
    store = BandStore(tmp_path / "s", {"test": 1})
    read: list[bytes] = []

    def get(keys: list[bytes]) -> list[bytes | None]:
        read.extend(keys)
        return [None] * len(keys)

    store._buckets._get = get
    for turn in range(3):
        documents = random_documents(20, first=store.inserted)
        documents.keys[:] = np.arange(5).repeat(4)
        decision = store.decide(documents, RULES)
        store.apply(decision, offset=20 * (turn + 1), documents=20)
    assert read == []
    assert store.held_bytes() > store._grown.size_bytes > 0
    keys = BucketKeys(np.zeros(5, np.uint8), np.arange(5, dtype=np.uint64))
    kept = store.buckets(keys)
    assert kept.sizes.tolist() == [12] * 5
    store.close()
    again = BandStore(tmp_path / "s", {"test": 1})
    assert again.buckets(keys) == kept
    again.close()
