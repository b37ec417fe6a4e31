"""Grown buckets that were read or written lately are at hand, and there are never too many."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lsh.index import BucketKeys
from tests.support.filling import RULES, random_documents
from worker.index.recent_buckets import RecentBuckets
from worker.index.store import BandStore

MOST = 100_000


def numbered(first: int, end: int) -> list[tuple[bytes, bytes]]:
    return [(b"%018d" % number, b"%032d" % number) for number in range(first, end)]


def test_what_was_asked_for_lately_is_here_and_there_are_never_too_many() -> None:
    recent = RecentBuckets(MOST)
    always = numbered(0, 10)
    recent.put(always)
    for first in range(10, 5_000, 50):
        some = numbered(first, first + 50)
        recent.put(some)
        for kept in (always, some):
            assert recent.get([key for key, _ in kept]) == [bucket for _, bucket in kept]
        assert recent.size_bytes <= MOST
    here = [bucket for bucket in recent.get([key for key, _ in numbered(0, 5_000)]) if bucket]
    assert 200 <= len(here) <= 400


def test_what_is_written_replaces_what_was_there_wherever_it_was() -> None:
    recent = RecentBuckets(MOST)
    recent.put([(b"a", b"first"), *numbered(0, 250)])  # It is in the older half.
    recent.put([(b"a", b"second")])
    assert recent.get([b"a", b"b"]) == [b"second", None]
    before = recent.size_bytes
    recent.put([(b"a", b"third one")])
    assert recent.get([b"a"]) == [b"third one"]
    assert recent.size_bytes == before + len(b"third one") - len(b"second")


def test_with_less_memory_fewer_are_kept() -> None:
    recent = RecentBuckets(MOST)
    recent.put(numbered(0, 300))
    before = recent.size_bytes
    for share in (100, 99, 95):
        recent.limit(MOST * share // 100)
        assert recent.size_bytes == before, "half of them went for little"
    recent.limit(MOST // 10)
    recent.put(numbered(300, 301))
    assert recent.size_bytes <= MOST // 10
    assert recent.get([b"%018d" % 300]) == [b"%032d" % 300]


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
        store.apply(decision, offset=20 * (turn + 1), now=0, documents=20)
    assert read == []
    assert store.held_bytes() > store._grown.size_bytes > 0
    keys = BucketKeys(np.zeros(5, np.uint8), np.arange(5, dtype=np.uint64))
    kept = store.buckets(keys)
    assert kept.sizes.tolist() == [12] * 5
    store.close()
    again = BandStore(tmp_path / "s", {"test": 1})
    assert again.buckets(keys) == kept
    again.close()
