"""A shard's answers, cut so that a record of them stays small."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from worker.frames import F32, U16, U32, U64, FingerprintFrame, Ids, MatchFrame
from worker.shard import Match
from worker.stages.order import Placed

__all__ = ["split_answer"]

_ROW_BYTES = U32.itemsize + U16.itemsize
_MATCH_BYTES = U16.itemsize + F32.itemsize
_MATCHED_BYTES = U64.itemsize + U16.itemsize
"""Of a document that is matched, next to its id."""
_MOST_MATCHED = 1 << 16
"""What ``which`` can tell apart."""


class _Part:
    """The answers of a part's documents, from row ``low`` on."""

    def __init__(self, low: int) -> None:
        self.low = low
        self.bytes = 0
        self.rows: list[int] = []
        self._counts: list[int] = []
        self._which: list[int] = []
        self._similarities: list[float] = []
        self._places: dict[int, int] = {}
        self._ids: list[bytes] = []

    def has_room(self, matches: Sequence[Match], limit: int) -> bool:
        """Tell whether the matches of one more document fit; those of the first always do."""
        if not self.rows:
            return True
        new = [match for match in matches if match.sequence not in self._places]
        size = _ROW_BYTES + _MATCH_BYTES * len(matches)
        size += sum(_MATCHED_BYTES + len(match.id) for match in new)
        return self.bytes + size <= limit and len(self._ids) + len(new) <= _MOST_MATCHED

    def add(self, row: int, matches: Sequence[Match]) -> None:
        """Add a document with its matches."""
        places, ids = self._places, self._ids
        self.bytes += _ROW_BYTES + _MATCH_BYTES * len(matches)
        for sequence, similarity, ident in matches:
            place = places.setdefault(sequence, len(ids))
            if place == len(ids):
                ids.append(ident)
                self.bytes += _MATCHED_BYTES + len(ident)
            self._which.append(place)
            self._similarities.append(similarity)
        self.rows.append(row)
        self._counts.append(len(matches))

    def frame(self, placed: Placed, shard: int, high: int) -> MatchFrame:
        """Return the answer of a shard for the documents up to row ``high``."""
        frame, low = placed.frame, self.low
        offsets = np.frombuffer(frame.offsets, U32)
        skipped = int(offsets[low]) if low else 0
        whole = high == placed.count
        end = frame.end if whole else frame.start + int(offsets[high])
        rows = offsets[self.rows] - U32.type(skipped)
        first = shard == 0
        return MatchFrame(
            layout=frame.layout,
            partition=frame.partition,
            start=frame.start + skipped,
            end=end,
            shard=shard,
            number=placed.number,
            first=low,
            offsets=(offsets[low:high] - U32.type(skipped)).tobytes() if first else b"",
            checksums=np.frombuffer(frame.checksums, U64)[low:high].tobytes() if first else b"",
            matched=rows.tobytes(),
            counts=np.array(self._counts, U16).tobytes(),
            which=np.array(self._which, U16).tobytes(),
            similarities=np.array(self._similarities, F32).tobytes(),
            sequences=np.array(list(self._places), U64).tobytes(),
            ids=Ids.pack(self._ids),
            accounted=_within(frame, skipped, end - frame.start) if first else None,
        )


def split_answer(
    placed: Placed, shard: int, matches: Mapping[int, Sequence[Match]], limit: int
) -> Iterator[MatchFrame]:
    """Cut a shard's answer at documents, so that no part is larger than about ``limit`` bytes.

    Shard 0 hands on what *route* has to know of all documents.
    """
    frame = placed.frame
    handed_on = 0
    if shard == 0:
        handed_on = len(frame.checksums) + len(frame.accounted or b"") + len(frame.offsets)
    part = _Part(0)
    for row in sorted(matches):
        if not part.has_room(matches[row], limit - handed_on):
            yield part.frame(placed, shard, row)
            part = _Part(row)
        part.add(row, matches[row])
    yield part.frame(placed, shard, placed.count)


def _within(frame: FingerprintFrame, low: int, high: int) -> bytes | None:
    """Return what is accounted for from ``low`` to ``high``, relative to ``low``."""
    if not frame.accounted:
        return frame.accounted
    accounted = np.frombuffer(frame.accounted, U32)
    first, last = np.searchsorted(accounted, (low, high))
    return (accounted[first:last] - U32.type(low)).tobytes()
