"""Reads parts of a shard's answer when they are needed."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lsh.index import Match
from worker.wire.corrections import ALLOWED
from worker.wire.ids import nameable
from worker.wire.matches import MatchFrame


class Judged(NamedTuple):
    """n judged documents: ``offsets`` int64[n], and ``checksums`` uint64[n] of their payloads.

    Their sequence numbers ascend from ``sequence`` by one.
    """

    offsets: npt.NDArray[np.int64]
    checksums: npt.NDArray[np.uint64]
    sequence: int

    def split(self, until: int) -> tuple[Judged, Judged]:
        """Return those before an offset, and the others."""
        row = int(np.searchsorted(self.offsets, until))
        before = Judged(self.offsets[:row], self.checksums[:row], self.sequence)
        return before, Judged(self.offsets[row:], self.checksums[row:], self.sequence + row)

    def rows_of(
        self, offsets: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        """Return the row at which each of m offsets is or would be, and whether it is there.

        Both are arrays [m].
        """
        rows = np.searchsorted(self.offsets, offsets)
        there = np.append(self.offsets, -1)[rows] == offsets
        return rows, there


class Found(NamedTuple):
    """The matches that one shard found for one document.

    They are the answer's matches ``first`` to ``last``; ``named`` are all documents it names.
    """

    answer: MatchFrame
    named: list[tuple[int, bytes]]
    first: int
    last: int


def allowance(found: list[Found]) -> bytes | None:
    """Return the id of the allowance that holds for a document, of which shard 0 says so first."""
    for answer, named, first, _ in found:
        sequence, ident = named[int(answer.which[first])]
        if sequence == ALLOWED:
            return ident
    return None


def best(found: list[Found], most: int) -> list[Match]:
    """Return the shards' matches merged: each document once, best first, ties by sequence.

    Each shard's matches must already be in this order. Of the best ``most``, those that have no id
    are left out: they were forgotten after the verdict that is published again.
    """
    merged = [
        (-similarity, *named[place], containment)
        for answer, named, first, last in found
        for place, similarity, containment in zip(
            answer.which[first:last].tolist(),
            answer.similarities[first:last].tolist(),
            _containments(answer, first, last),
            strict=True,
        )
    ]
    if len(found) > 1:
        merged = sorted(set(merged))
    merged = merged[:most]
    named = nameable(len(merged), (ident for _, _, ident, _ in merged))
    return [
        Match(sequence, -negative, ident, containment or None)
        for negative, sequence, ident, containment in merged[:named]
        if ident
    ]


def _containments(answer: MatchFrame, first: int, last: int) -> list[float]:
    """Return the containments of some matches; 0 for one that has none."""
    if answer.containments is None:
        return [0.0] * (last - first)
    given: list[float] = answer.containments[first:last].tolist()
    return given


def next_named(frame: MatchFrame, offset: int) -> int:
    """Return the first offset from ``offset`` on that the frame names, or the frame's end."""
    following = [frame.end]
    for offsets in (frame.offsets, frame.accounted):
        (place,) = _places(offsets, frame.start, offset)
        following += (frame.start + offsets[place : place + 1].astype(np.int64)).tolist()
    return min(following)


def judged_of(frame: MatchFrame, low: int, high: int) -> Judged:
    """Return shard 0's judged documents from offset ``low`` to ``high``."""
    first, last = _places(frame.offsets, frame.start, low, high)
    offsets = frame.offsets[first:last].astype(np.int64) + frame.start
    return Judged(offsets, frame.checksums[first:last], frame.sequence + first)


def absolute(offsets: npt.NDArray[np.uint32] | None, start: int) -> frozenset[int]:
    """Return offsets that are relative to ``start``."""
    return (
        frozenset() if offsets is None else frozenset((offsets.astype(np.int64) + start).tolist())
    )


def add_found(frame: MatchFrame, low: int, high: int, found: dict[int, list[Found]]) -> None:
    """Add the matches of the documents from ``low`` to ``high`` to ``found``, by offset."""
    if not len(frame.matched):
        return
    first, last = _places(frame.matched, frame.start, low, high)
    if first == last:
        return
    ends = [0, *accumulate(frame.counts[:last].tolist())]
    named = frame.named()
    for row, offset in enumerate(frame.matched[first:last].tolist(), first):
        of_document = Found(frame, named, ends[row], ends[row + 1])
        found.setdefault(frame.start + offset, []).append(of_document)


def _places(offsets: npt.NDArray[np.uint32], start: int, *bounds: int) -> list[int]:
    """Return the index of each bound in ``offsets``, which are relative to ``start``."""
    relative = [max(0, bound - start) for bound in bounds]
    places: list[int] = np.searchsorted(offsets, relative).tolist()
    return places
