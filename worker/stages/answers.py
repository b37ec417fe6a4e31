"""A shard's answers, cut so that a record of them stays small."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from worker.frames import F32, U16, U32, U64, BandFrame, Ids, MatchFrame
from worker.shard import Match

__all__ = ["split_answer"]


def split_answer(
    frame: BandFrame, matches: Mapping[int, Sequence[Match]], limit: int
) -> Iterator[MatchFrame]:
    """Cut an answer at documents, so that no part is larger than about ``limit`` bytes."""
    offsets = np.frombuffer(frame.offsets, U32)
    checksums = np.frombuffer(frame.checksums, U64)
    cuts = []
    size = 0
    for row in sorted(matches):
        own = 6 + sum(14 + len(match.id) for match in matches[row])
        if size and size + own > limit:
            cuts.append(row)
            size = 0
        size += own
    for low, high in pairwise([0, *cuts, frame.count]):
        skipped = int(offsets[low]) if low else 0
        rows = sorted(row for row in matches if low <= row < high)
        found = [match for row in rows for match in matches[row]]
        yield MatchFrame(
            layout=frame.layout,
            partition=frame.partition,
            start=frame.start + skipped,
            end=frame.end if high == frame.count else frame.start + int(offsets[high]),
            shard=frame.shard,
            number=frame.number,
            first=low,
            offsets=(offsets[low:high] - U32.type(skipped)).tobytes() if frame.shard == 0 else b"",
            checksums=checksums[low:high].tobytes() if frame.shard == 0 else b"",
            matched=(offsets[rows] - U32.type(skipped)).tobytes(),
            counts=np.array([len(matches[row]) for row in rows], U16).tobytes(),
            sequences=np.array([match.sequence for match in found], U64).tobytes(),
            similarities=np.array([match.similarity for match in found], F32).tobytes(),
            ids=Ids.pack([match.id for match in found]),
        )
