"""Records that were read lately are here, and there are never too many."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lsh.index.layout import pack_records
from lsh.index.records import Records
from worker.index.recent_records import RecentPages, RecentRecords

SLOTS = 16
MOST = 100 * (SLOTS + 96)
"""Enough for a hundred of these records."""


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
    assert len(here(recent, np.arange(1_020))) == 100


def test_with_less_memory_fewer_are_kept_and_with_more_memory_more() -> None:
    recent = RecentRecords(10 * MOST)
    recent.put(np.arange(1_000), records(np.arange(1_000)))
    assert len(here(recent, np.arange(1_000))) == 1_000
    recent.limit(9 * MOST)
    assert len(here(recent, np.arange(1_000))) == 1_000, "all were moved for little"
    recent.limit(MOST)
    assert len(here(recent, np.arange(1_000))) == 100
    assert recent.size_bytes == MOST
    recent.put(np.arange(1_000), records(np.arange(1_000)))
    assert len(here(recent, np.arange(1_000))) == 100
    recent.limit(2 * MOST)
    recent.put(np.arange(1_000), records(np.arange(1_000)))
    assert len(here(recent, np.arange(1_000))) == 200


def test_many_are_moved_whole_and_beside_others_of_another_width() -> None:
    recent = RecentRecords(2_000 * MOST)
    numbers = np.arange(150_000)
    recent.put(numbers, records(numbers))
    assert len(here(recent, numbers)) == 150_000
    recent.limit(1_000 * MOST)
    assert len(here(recent, numbers)) == 100_000
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


def test_of_several_with_one_place_one_is_kept_whole() -> None:
    recent = RecentRecords(MOST)
    recent.put(np.arange(100), records(np.arange(100)))
    numbers = np.array([7, 107, 8, 207])
    recent.put(numbers, records(numbers))
    assert here(recent, numbers) == [8, 207]


def test_what_was_asked_for_gives_way_to_new_ones_only_the_second_time() -> None:
    recent = RecentRecords(MOST)
    old = np.arange(100)
    recent.put_new(0, packed(old))
    assert here(recent, old) == [], "kept before anything was read"
    recent.put(old[:1], records(old[:1]))
    recent.put_new(1, packed(old[1:]))
    assert here(recent, old[:10]) == old[:10].tolist()
    recent.put_new(100, packed(old + 100))
    assert here(recent, old[:5]) == old[:5].tolist()
    assert here(recent, old[10:] + 100) == (old[10:] + 100).tolist()
    recent.forget(9)
    recent.put_new(200, packed(old[:10] + 200))
    assert here(recent, old[:5]) == old[:5].tolist(), "asked for again"
    assert here(recent, old[5:10] + 200) == (old[5:10] + 200).tolist(), "not asked for since"


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
