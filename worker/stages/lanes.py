"""One partition on its way through *route*: its documents, and the shards' answers for them."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from worker.bus import Record
from worker.frames import MatchFrame
from worker.stages.base import StageError
from worker.stages.budget import answer_cost, record_cost
from worker.stages.unpacking import Found, Judged, add_found, judged_of, next_named

__all__ = ["Answers", "Lane", "Step"]

_HIGH = 0.75
"""Of a lane's share: from here on it holds back inputs."""
_RESUMED_AT = 0.25
"""Of what held an input back: from here on it comes again. To pause throws away what was fetched,
so the band is wide."""


class _Answer(NamedTuple):
    """A frame that is not dealt with yet, the offset after it, and what it costs."""

    frame: MatchFrame
    after: int
    cost: int


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
    cut: bool = False
    """The log began above where this one was read, and no answer has come since."""

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
        self.cut = False
        if frame.end <= self.covered:
            return
        self.covered = frame.end
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
            until = next_named(frame, until)
            if until < frame.end:
                break
        return until

    def step(self, room: int) -> Step | None:
        """Return what is said of the next offsets that can be published, at most a frame's.

        Their documents take about ``room`` bytes at most, but for the first of them.
        """
        until = min(self.ready(), self._fits(room))
        if until <= self.published:
            return None
        heads = [answers.taken[0].frame for answers in self.answers]
        end = min(until, *(frame.end for frame in heads))
        found: dict[int, list[Found]] = {}
        for frame in heads:
            add_found(frame, self.published, end, found)
        judged, accounted = judged_of(heads[0], self.published, end)
        return Step(end, judged, accounted, found)

    def _fits(self, room: int) -> int:
        """Return before which offset the documents fit into ``room`` bytes; the first one does."""
        if self.cost > room:
            for record, cost in zip(self.documents, self.costs, strict=True):
                if room <= 0:
                    return record.offset
                room -= cost
        return sys.maxsize

    def waits_in_vain(self) -> int | None:
        """Return the first document that waits, if it may be for an answer that was deleted."""
        if not self.documents:
            return None
        first = self.documents[0].offset
        in_vain = any(answers.cut and answers.covered <= first for answers in self.answers)
        return first if in_vain else None

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
