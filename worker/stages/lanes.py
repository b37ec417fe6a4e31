"""One partition on its way through *route*: its documents, and the shards' answers for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from worker.bus import Record
from worker.frames import F32, POSITION_BITS, U16, U32, U64, MatchFrame
from worker.shard import Match
from worker.stages.base import StageError
from worker.stages.budget import answer_cost, record_cost

__all__ = ["Answers", "Found", "Judged", "Lane", "Step", "best"]

_HIGH = 0.75
"""Of a lane's share: from here on it holds back inputs."""
_RESUMED_AT = 0.25
"""Of what held an input back: from here on it comes again. To pause throws away what was fetched,
so the band is wide."""


class Judged(NamedTuple):
    """What shard 0 says of a document: where it is, and what it was when it was signed."""

    offset: int
    checksum: int
    sequence: int


class _Answer(NamedTuple):
    """A frame that is not dealt with yet, the offset after it, and what it costs."""

    frame: MatchFrame
    after: int
    cost: int


class Found(NamedTuple):
    """The matches that one shard found for one document: a slice of its answer's arrays."""

    answer: _Unpacked
    first: int
    last: int


class _Unpacked(NamedTuple):
    """The matches of an answer."""

    which: np.ndarray[tuple[int], np.dtype[np.uint16]]
    similarities: np.ndarray[tuple[int], np.dtype[np.float32]]
    sequences: list[int]
    ids: list[bytes]


class Step(NamedTuple):
    """What the shards say of a range of offsets up to ``end``.

    ``accounted``: offsets that were read and not judged; None from workers that don't tell.
    """

    end: int
    judged: deque[Judged]
    accounted: frozenset[int] | None
    found: Mapping[int, list[Found]]


@dataclass(slots=True)
class Answers:
    """One shard's answers for one partition of ``documents``."""

    covered: int
    following: int | None = None
    """Where the next frame must begin. The first one after a start may begin earlier."""
    taken: deque[_Answer] = field(default_factory=deque)
    cost: int = 0

    def take(self, record: Record, frame: MatchFrame) -> None:
        """Keep an answer.

        Raises:
            StageError: it leaves a gap, or repeats what was there.
        """
        gap = frame.start > self.covered
        if gap or (self.following is not None and frame.start != self.following):
            expected = self.covered if self.following is None else self.following
            msg = (
                f"{record.topic}[{record.partition}] at offset {record.offset} answers for"
                f" documents from offset {frame.start}, and {expected} comes next: a frame"
                " was lost or doubled"
            )
            raise StageError(msg)
        self.following = frame.end
        self.covered = max(self.covered, frame.end)
        answer = _Answer(frame, record.offset + 1, answer_cost(record))
        self.taken.append(answer)
        self.cost += answer.cost

    def drop(self, until: int) -> int | None:
        """Drop the answers up to an offset; return where to read on, if any were dropped."""
        after = None
        while self.taken and self.taken[0].frame.end <= until:
            _, after, cost = self.taken.popleft()
            self.cost -= cost
        return after


@dataclass(slots=True)
class Lane:
    """One partition of ``documents`` with its answers.

    ``published`` is where it stands; ``arrived``: no document before it is still to come.
    """

    published: int
    arrived: int
    answers: list[Answers]
    documents: deque[Record] = field(default_factory=deque)
    cost: int = 0
    """Of the documents."""
    costs: deque[int] = field(default_factory=deque)
    """Of each."""

    def add(self, record: Record) -> None:
        """Keep a document."""
        self.documents.append(record)
        cost = record_cost(record)
        self.costs.append(cost)
        self.cost += cost
        self.arrived = record.offset + 1

    def take(self, until: int) -> list[Record]:
        """Take out the documents before an offset."""
        documents, costs = self.documents, self.costs
        taken = []
        while documents and documents[0].offset < until:
            taken.append(documents.popleft())
            self.cost -= costs.popleft()
        return taken

    def ready(self) -> int:
        """Return up to where all answers, and all documents, are there."""
        covered = min(answers.covered for answers in self.answers)
        return covered if covered <= self.arrived else min(covered, self._documents_until())

    def _documents_until(self) -> int:
        """Return before which offset no document is missing.

        Where shard 0's answers name neither a document nor anything else that was read, there
        is nothing to wait for: transaction markers, and what was aborted.
        """
        until = self.arrived
        for frame, _, _ in self.answers[0].taken:
            if frame.end <= until:
                continue
            if frame.accounted is None:
                break
            until = _next_named(frame, until)
            if until < frame.end:
                break
        return until

    def step(self) -> Step | None:
        """Return what is said of the next offsets that can be published, at most a frame's."""
        until = self.ready()
        if until <= self.published:
            return None
        heads = [answers.taken[0].frame for answers in self.answers]
        end = min(until, *(frame.end for frame in heads))
        found: dict[int, list[Found]] = {}
        for frame in heads:
            _find(frame, self.published, end, found)
        judged, accounted = _judged(heads[0], self.published, end)
        return Step(end, judged, accounted, found)

    def total(self) -> int:
        """Return what all that waits costs, in bytes."""
        return self.cost + sum(answers.cost for answers in self.answers)

    def ahead(self, share: float, held: Iterable[bool]) -> list[bool]:
        """Tell which inputs to hold back, the documents first, given which ones are by now.

        Held back is what takes a good part of a lane that is nearly full. An input that the
        others wait for has nothing that waits itself, so it is never held back. The lane
        takes its share at most, and what one more poll brings.
        """
        total = self.total()
        costs = [self.cost, *(answers.cost for answers in self.answers)]
        own = share * (1 - _HIGH) / len(costs)
        return [
            total > share * _HIGH * band and cost > own * band
            for cost, band in zip(costs, (_RESUMED_AT if now else 1.0 for now in held), strict=True)
        ]


def best(found: list[Found]) -> list[Match]:
    """Merge the shards' answers: a document once, best first, ties by sequence.

    Each shard's own are in this order.
    """
    merged = [
        (-similarity, answer.sequences[place], answer.ids[place])
        for answer, first, last in found
        for place, similarity in zip(
            answer.which[first:last].tolist(),
            answer.similarities[first:last].tolist(),
            strict=True,
        )
    ]
    if len(found) > 1:
        merged = sorted(set(merged))
    return [Match(sequence, -negative, ident) for negative, sequence, ident in merged]


def _next_named(frame: MatchFrame, offset: int) -> int:
    """Return the first offset from ``offset`` on of which the frame says something, or its end."""
    named = [frame.end]
    for array in (frame.offsets, frame.accounted or b""):
        offsets = np.frombuffer(array, U32)
        place = int(np.searchsorted(offsets, max(0, offset - frame.start)))
        if place < len(offsets):
            named.append(frame.start + int(offsets[place]))
    return min(named)


def _judged(frame: MatchFrame, low: int, high: int) -> tuple[deque[Judged], frozenset[int] | None]:
    """Return what shard 0 says of the documents from ``low`` to ``high``."""
    start = frame.start
    offsets = np.frombuffer(frame.offsets, U32)
    first, last = np.searchsorted(offsets, (max(0, low - start), high - start)).tolist()
    base = (frame.number << POSITION_BITS) + frame.first
    judged = deque(
        map(
            Judged,
            (offsets[first:last].astype(np.int64) + start).tolist(),
            np.frombuffer(frame.checksums, U64)[first:last].tolist(),
            range(base + first, base + last),
        )
    )
    if frame.accounted is None:
        return judged, None
    accounted = np.frombuffer(frame.accounted, U32).astype(np.int64) + start
    return judged, frozenset(accounted.tolist())


def _find(frame: MatchFrame, low: int, high: int, found: dict[int, list[Found]]) -> None:
    """Add the matches of the documents from ``low`` to ``high``, by offset."""
    if not frame.matched:
        return
    matched = np.frombuffer(frame.matched, U32)
    first, last = np.searchsorted(matched, (max(0, low - frame.start), high - frame.start)).tolist()
    if first == last:
        return
    ends = [0, *accumulate(np.frombuffer(frame.counts, U16)[:last].tolist())]
    answer = _Unpacked(
        np.frombuffer(frame.which, U16),
        np.frombuffer(frame.similarities, F32),
        np.frombuffer(frame.sequences, U64).tolist(),
        frame.ids.unpack(),
    )
    start = frame.start
    for row, offset in enumerate(matched[first:last].tolist(), first):
        of_document = Found(answer, ends[row], ends[row + 1])
        if start + offset in found:
            found[start + offset].append(of_document)
        else:
            found[start + offset] = [of_document]
