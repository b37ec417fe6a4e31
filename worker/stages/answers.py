"""Splits a shard's answers into records for *index*; reads parts of them for *route*."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from lsh._core import Matches
from lsh.index import Match
from worker.stages.order import Placed
from worker.wire.corrections import ALLOWED
from worker.wire.ids import NO_TOMBSTONES, TOMBSTONE_BYTES, Ids, Tombstones, nameable
from worker.wire.matches import (
    CONTAINMENT_BYTES,
    MATCH_BYTES,
    MOST_NAMED,
    NAMED_BYTES,
    ROW_BYTES,
    MatchFrame,
)


def listed(found: Matches) -> list[Match]:
    """Return all matches of a batch, those of a document together, best first."""
    shares = [share or None for share in found.containments.tolist()]
    columns = found.sequences.tolist(), found.similarities.tolist(), found.ids, shares
    return list(map(Match, *columns))


class BatchMatches:
    """The matches of a batch, of which each frame has some rows."""

    def __init__(self, found: Matches) -> None:
        """Take the matches of n documents."""
        self._starts = found.starts
        self._all = listed(found)

    def of(self, low: int, high: int) -> dict[int, list[Match]]:
        """Return the matches of those rows from ``low`` to ``high`` that have any, from 0 on."""
        starts = self._starts[low : high + 1]
        rows = np.flatnonzero(np.diff(starts))
        begin, end = starts[rows].tolist(), starts[rows + 1].tolist()
        spans = zip(rows.tolist(), begin, end, strict=True)
        return {row: self._all[first:last] for row, first, last in spans}


class _Part:
    """The answers of one part: for documents from row ``low`` on."""

    def __init__(self, low: int) -> None:
        self.low = low
        self.bytes = 0
        self.rows: list[int] = []
        self._counts: list[int] = []
        self._which: list[int] = []
        self._similarities: list[float] = []
        self._containments: list[float] = []
        self._any_contained = False
        # A document that is forgotten has its id in matches before that, and none after it.
        self._places: dict[tuple[int, bytes], int] = {}

    def has_room(self, matches: Sequence[Match], limit: int) -> bool:
        """Return whether the matches of one more document fit. The first document always fits."""
        if not self.rows:
            return True
        new = [match for match in matches if (match.sequence, match.id) not in self._places]
        size = ROW_BYTES + MATCH_BYTES * len(matches)
        size += sum(NAMED_BYTES + len(match.id) for match in new)
        if self._any_contained or any(match.containment is not None for match in matches):
            size += CONTAINMENT_BYTES * (len(self._which) + len(matches))
        return self.bytes + size <= limit and len(self._places) + len(new) <= MOST_NAMED

    def add(self, row: int, matches: Sequence[Match]) -> None:
        """Add a document with its matches."""
        places = self._places
        self.bytes += ROW_BYTES + MATCH_BYTES * len(matches)
        for sequence, similarity, ident, containment in matches:
            new = len(places)
            place = places.setdefault((sequence, ident), new)
            if place == new:
                self.bytes += NAMED_BYTES + len(ident)
            self._which.append(place)
            self._similarities.append(similarity)
            self._containments.append(containment or 0.0)
            self._any_contained |= containment is not None
        self.rows.append(row)
        self._counts.append(len(matches))

    def frame(self, placed: Placed, shard: int, high: int, known: Collection[bytes]) -> MatchFrame:
        """Return the shard's answer for the documents from ``low`` up to row ``high``."""
        frame, low = placed.frame, self.low
        skipped = frame.offsets[low] if low else np.uint32(0)
        whole = high == placed.count
        end = frame.end if whole else frame.start + int(frame.offsets[high])
        handed_on = slice(low, high if shard == 0 else low)
        return MatchFrame(
            layout=frame.layout,
            partition=frame.partition,
            start=frame.start + int(skipped),
            end=end,
            shard=shard,
            number=placed.number,
            first=low,
            offsets=frame.offsets[handed_on] - skipped,
            checksums=frame.checksums[handed_on],
            matched=frame.offsets[self.rows] - skipped,
            counts=np.array(self._counts, np.uint16),
            which=np.array(self._which, np.uint16),
            similarities=np.array(self._similarities, np.float32),
            sequences=np.array([sequence for sequence, _ in self._places], np.uint64),
            ids=Ids.pack([ident for _, ident in self._places]),
            accounted=_within(frame.accounted, skipped, end - frame.start)
            if shard == 0
            else frame.accounted[:0],
            containments=np.array(self._containments, np.float32) if self._any_contained else None,
            forgetting=_within(frame.tombstones.offsets, skipped, end - frame.start)
            if shard == 0 and len(frame.tombstones)
            else None,
            forgotten=frame.tombstones.within(int(skipped), end - frame.start, known)
            if known
            else NO_TOMBSTONES,
            refused=placed.refused,
        )


def split_answer(
    placed: Placed,
    shard: int,
    matches: Mapping[int, Sequence[Match]],
    limit: int,
    known: Collection[bytes] = (),
) -> Iterator[MatchFrame]:
    """Split a shard's answer between documents into parts of at most about ``limit`` bytes.

    Each part also has its tombstones whose ids are ``known``. Shard 0 forwards what *route* needs
    to know about all documents.
    """
    frame = placed.frame
    handed_on = len(frame.tombstones) * TOMBSTONE_BYTES + frame.tombstones.ids.data.nbytes
    if shard == 0:
        handed_on = frame.handed_on
    part = _Part(0)
    for row in sorted(matches):
        own = matches[row]
        own = own[: nameable(len(own), (match.id for match in own))]
        if not part.has_room(own, limit - handed_on):
            yield part.frame(placed, shard, row, known)
            part = _Part(row)
        part.add(row, own)
    yield part.frame(placed, shard, placed.count, known)


def with_done(part: MatchFrame, start: int, done: Sequence[tuple[int, bytes]]) -> MatchFrame:
    """Return a part of an answer that also names corrections; see `MatchFrame`.

    ``start`` is that of the frame, to which the offsets of ``done`` are relative.
    """
    found = zip(part.forgotten.offsets.tolist(), part.forgotten.ids.unpack(), strict=True)
    known = [(part.start + offset, ident) for offset, ident in found]
    own = [(start + offset, name) for offset, name in done]
    own = [one for one in own if part.start <= one[0] < part.end]
    forgotten = Tombstones.pack(part.start, sorted(known + own))
    return msgspec.structs.replace(part, forgotten=forgotten)


def _within(offsets: npt.NDArray[np.uint32], low: np.uint32, high: int) -> npt.NDArray[np.uint32]:
    """Return the ascending offsets from ``low`` to ``high``, relative to ``low``."""
    first, last = np.searchsorted(offsets, (int(low), high))
    return offsets[first:last] - low


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
