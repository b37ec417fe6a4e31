"""Records that were read lately are here, and there are never too many."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from lsh.index.layout import pack_records
from lsh.index.records import Records
from worker.index.recent_records import RecentPages, RecentRecords

SLOTS = 16
PLACES = 128
"""A power of two: a number belongs to the place of its remainder."""
MOST = PLACES * (SLOTS + 96)
"""Enough for so many of these records."""


def records(numbers: npt.NDArray[np.int64], ident: bytes = b"") -> Records:
    """Return records that have their document's number as their sequence."""
    made = Records.blank(len(numbers), SLOTS, 2)._replace(sequences=numbers.astype(np.uint64))
    made.exist[:] = made.kept[:] = True
    made.ids[:] = ident
    return made


def packed(numbers: npt.NDArray[np.int64]) -> list[bytes]:
    made = records(numbers)
    return pack_records(made.sequences, made.times, made.shingles, made.sketches, made.ids.tolist())


def here(recent: RecentRecords, numbers: npt.NDArray[np.int64]) -> list[int]:
    found, some = recent.get(numbers)
    kept = [] if some is None else some.sequences.tolist()
    assert numbers[found].tolist() == kept
    return kept


def test_what_was_read_lately_is_here_and_there_are_never_too_many() -> None:
    recent = RecentRecords(MOST)
    assert here(recent, np.arange(5)) == []
    for first in range(0, 1_000, 30):
        numbers = np.arange(first, first + 30)
        recent.put(numbers, records(numbers))
        assert here(recent, numbers) == numbers.tolist()
        assert recent.size_bytes <= MOST
    assert len(here(recent, np.arange(1_020))) == PLACES


def test_with_less_memory_fewer_are_kept_and_with_more_memory_more() -> None:
    recent, numbers = RecentRecords(10 * MOST), np.arange(1_280)
    recent.put(numbers, records(numbers))
    assert len(here(recent, numbers)) == 1_280
    recent.limit(9 * MOST)
    assert len(here(recent, numbers)) == 1_280, "some went for little"
    recent.limit(MOST)
    assert len(here(recent, numbers)) == PLACES
    assert recent.size_bytes == MOST
    recent.put(numbers, records(numbers))
    assert len(here(recent, numbers)) == PLACES
    recent.limit(2 * MOST)
    recent.put(numbers, records(numbers))
    assert len(here(recent, numbers)) == 2 * PLACES


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 3_000)), min_size=1, max_size=12))
def test_while_there_are_enough_places_nothing_goes(changes: list[tuple[int, int]]) -> None:
    recent, count = RecentRecords(1), 0
    for more, places in changes:
        numbers = np.arange(count, count + more)
        count += more
        recent.limit(max(places, count) * (SLOTS + 96))
        recent.put(numbers, records(numbers))
        assert here(recent, np.arange(count)) == list(range(count))
        assert recent.size_bytes == count * (SLOTS + 96)


def test_large_ones_grow_and_shrink_by_a_part_at_a_time() -> None:
    recent, numbers = RecentRecords(2_000 * MOST), np.arange(200_000)
    recent.put(numbers, records(numbers))
    assert here(recent, numbers) == numbers.tolist()
    some, seen = np.arange(10), [200_000]
    while len(seen) < 3 or seen[-1] < seen[-2]:
        recent.limit(500 * MOST)
        seen.append(len(here(recent, numbers)))
    assert seen[-1] == 500 * PLACES
    assert max(former - later for former, later in pairwise(seen)) <= 1 << 15
    recent.limit(5_000 * MOST)
    sizes = []
    for first in range(200_000, 400_000, 10):
        recent.put(some + first, records(some + first))
        sizes.append(len(recent._numbers))
    assert sizes[-1] > 250_000
    assert max(later - former for former, later in pairwise(sizes)) <= 1 << 15


def test_records_move_whole_and_beside_others_of_another_width() -> None:
    recent, numbers = RecentRecords(2_000 * MOST), np.arange(150_000)
    recent.put(numbers, records(numbers))
    for _ in range(5):
        recent.limit(800 * MOST)
    assert 800 * PLACES <= len(here(recent, numbers)) <= 1_000 * PLACES
    recent.limit(5_000 * MOST)
    later = np.arange(150_000, 450_000)
    recent.put(later, records(later)._replace(new=np.ones((300_000, 1), np.uint8)))
    found, some = recent.get(np.arange(450_000))
    assert some is not None
    assert some.new.shape[1] == 2
    old = np.flatnonzero(found) < 150_000
    assert some.new[~old].tolist() == [[1, 0]] * 300_000
    assert not some.new[old].any()
    assert old.sum() > 50_000


def test_records_move_where_they_belong_and_nothing_is_left_where_they_were() -> None:
    recent, numbers = RecentRecords(MOST), np.arange(100, 200)
    recent.put(numbers, records(numbers, b"someone"))
    recent.limit(2 * MOST)
    recent.put(numbers[:1], records(numbers[:1], b"someone"))
    assert len(recent._numbers) == 2 * PLACES
    assert here(recent, numbers) == numbers.tolist()
    assert recent._records.ids.tolist().count(b"someone") == 100
    recent.limit(MOST)
    assert len(recent._numbers) == PLACES
    assert here(recent, numbers) == numbers.tolist()
    for number in numbers.tolist():
        recent.forget(number)
    assert b"someone" not in recent._records.ids.tolist()


def test_of_several_with_one_place_one_is_kept_whole() -> None:
    recent, numbers = RecentRecords(MOST), np.arange(PLACES)
    recent.put(numbers, records(numbers))
    numbers = np.array([7, 7 + PLACES, 8, 8 + 2 * PLACES])
    recent.put(numbers, records(numbers))
    assert here(recent, numbers) == [7 + PLACES, 8 + 2 * PLACES]


def test_what_was_asked_for_gives_way_to_new_ones_only_the_second_time() -> None:
    recent, old = RecentRecords(MOST), np.arange(PLACES)
    recent.put_new(0, packed(old))
    assert here(recent, old) == [], "kept before anything was read"
    recent.put(old[:1], records(old[:1]))
    recent.put_new(1, packed(old[1:]))
    assert here(recent, old[:10]) == old[:10].tolist()
    second, third = old + PLACES, old + 2 * PLACES
    recent.put_new(PLACES, packed(second))
    assert here(recent, old[:5]) == old[:5].tolist()
    assert here(recent, second[10:]) == second[10:].tolist()
    recent.forget(9)
    recent.put_new(2 * PLACES, packed(third[:10]))
    assert here(recent, old[:5]) == old[:5].tolist(), "asked for again"
    assert here(recent, third[5:10]) == third[5:10].tolist(), "not asked for since"


def test_a_record_that_is_written_again_is_replaced_though_it_was_asked_for() -> None:
    recent = RecentRecords(MOST)
    numbers = np.arange(10)
    recent.put(numbers, records(numbers))
    recent.put_new(0, packed(numbers + 50))
    _, found = recent.get(numbers)
    assert found is not None
    assert found.sequences.tolist() == (numbers + 50).tolist()


def test_long_ids_and_forgotten_documents_are_not_kept() -> None:
    recent = RecentRecords(MOST)
    numbers = np.arange(10)
    recent.put(numbers, records(numbers, b"x" * 65))
    assert here(recent, numbers) == []
    recent.put(numbers, records(numbers, b"x" * 64))
    assert here(recent, numbers) == numbers.tolist()
    recent.forget(3)
    recent.forget(103)
    assert here(recent, numbers) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert recent.size_bytes == 9 * (SLOTS + 96)


def test_the_newest_pages_stay() -> None:
    pages = RecentPages(1_000)
    for number in range(50):
        pages.put(number, bytes(100))
    pages.put(49, bytes(200))
    assert [number for number in range(50) if pages.get(number)] == list(range(41, 50))
    assert pages.size_bytes == 1_000
    pages.forget(49)
    pages.forget(7)
    assert pages.get(49) is None
    assert pages.size_bytes == 800
