"""What the shards have found for a document, merged."""

from __future__ import annotations

import numpy as np

from lsh.index import Match
from worker.stages.unpacking import Found, best
from worker.wire import Ids, MatchFrame


def found(*matches: Match) -> Found:
    """Return a shard's matches for one document."""
    none = np.empty(0, np.uint32)
    shares = [match.containment or 0.0 for match in matches]
    frame = MatchFrame(
        layout="",
        partition=0,
        start=0,
        end=1,
        shard=1,
        number=0,
        first=0,
        offsets=none,
        checksums=none.astype(np.uint64),
        matched=np.zeros(1, np.uint32),
        counts=np.array([len(matches)], np.uint16),
        which=np.arange(len(matches), dtype=np.uint16),
        similarities=np.array([match.similarity for match in matches], np.float32),
        sequences=np.array([match.sequence for match in matches], np.uint64),
        ids=Ids.pack([match.id for match in matches]),
        containments=np.array(shares, np.float32) if any(shares) else None,
    )
    return Found(frame, frame.named(), 0, len(matches))


A, B, C = Match(1, 1.0, b"a"), Match(2, 0.75, b"b"), Match(3, 0.5, b"c")
GONE = Match(0, 1.0, b"")


def test_each_document_counts_once_best_first() -> None:
    assert best([found(A, C), found(A, B)], 64) == [A, B, C]
    assert best([found(A, C), found(A, B)], 2) == [A, B]


def test_what_was_forgotten_is_left_out_of_the_best() -> None:
    """So it doesn't matter to how many shards the others come."""
    assert best([found(GONE, A), found(GONE, B)], 2) == [A]
    assert best([found(GONE)], 64) == []


def test_matches_by_containment_are_in_the_order_of_similarity() -> None:
    """Shards agree on a containment, or that there is none; so each document counts once."""
    d, e = Match(4, 0.5, b"d", 0.75), Match(5, 0.75, b"e", 1.0)
    assert best([found(A, C, d), found(e, d), found(A)], 64) == [A, e, C, d]
    assert best([found(e, d), found(B)], 2) == [B, e]
