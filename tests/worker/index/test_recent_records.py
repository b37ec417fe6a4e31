"""Records that are read again stay, others go, and there are never too many."""

from __future__ import annotations

from worker.index.recent_records import RecentPages, RecentRecords

MOST = 1 << 16


def test_what_is_read_again_and_again_stays() -> None:
    recent = RecentRecords(MOST)
    recent.put(0, b"often")
    for number in range(1, 5_000):
        recent.put(number, b"%d" % number)
        assert recent.get(number) == b"%d" % number
        assert recent.get(0) == b"often"
    assert recent.get(1) is None


def test_there_are_never_too_many() -> None:
    recent = RecentRecords(MOST)
    for number in range(5_000):
        recent.put(number, bytes(number % 100))
        assert recent.size_bytes <= MOST + 1_000
    assert recent.size_bytes > MOST // 2


def test_what_is_forgotten_is_gone_from_both_generations() -> None:
    recent = RecentRecords(MOST)
    recent.put(0, b"old")
    number = 1
    while 0 in recent._young:
        recent.put(number, b"")
        number += 1
    recent.put(number, b"young")
    for gone in (0, number):
        recent.forget(gone)
        assert recent.get(gone) is None


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
