"""The lanes of *route*: for each partition, its documents and the shards' answers for them."""

from __future__ import annotations

import logging
import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import msgspec
import numpy as np

from worker.bus import Record, RecordBatch
from worker.stages.answers import Found, Judged, absolute, add_found, judged_of, next_named
from worker.stages.base import StageError
from worker.stages.budget import answer_cost, batch_cost, row_costs
from worker.wire.matches import MatchFrame

_HIGH = 0.75
"""The part of its share that a lane fills before it pauses inputs."""
_RESUMED_AT = 0.25
"""A paused input resumes below this part of the limits that paused it. Pausing discards what was
prefetched, so the band is wide."""


class _Answer(NamedTuple):
    """A frame that is still needed, the offset after it, and its cost in bytes."""

    frame: MatchFrame
    after: int
    cost: int


class Step(NamedTuple):
    """The shards' answers for a range of offsets up to ``end``.

    ``answer`` is shard 0's. ``found`` are all shards' matches by offset. ``refused`` says why there
    are no verdicts, if one of the answers does.
    """

    end: int
    answer: MatchFrame
    judged: Judged
    found: Mapping[int, list[Found]]
    refused: str | None = None

    def named(self) -> tuple[frozenset[int], frozenset[int]]:
        """Return the offsets that were read but not judged, and those that forget a document."""
        answer, start = self.answer, self.answer.start
        return absolute(answer.accounted, start), absolute(answer.forgetting, start)


@dataclass(slots=True)
class Answers:
    """One shard's answers for one partition of ``documents``."""

    covered: int
    following: int | None = None
    """Where the next frame must begin. The first one after a start may begin earlier."""
    taken: deque[_Answer] = field(default_factory=deque)
    cost: int = 0
    cut: bool = False
    """The log began above the position, and no answer has come since."""
    late: bool = False
    """Another generation has answered before; the first frame then begins where that one ended."""
    begin: int | None = None
    """Where the first frame has begun."""
    deleted: int = 0
    """Documents before this offset were deleted before the lane began."""

    def take(self, record: Record, frame: MatchFrame) -> range | None:
        """Keep an answer.

        If answers were deleted together with their documents, nothing is left to publish there, so
        the gap counts as answered.

        Returns the offsets of such a gap; None if there is none.

        Raises:
            StageError: it leaves another gap, or repeats a range.
        """
        first = self.following is None
        gap = frame.start > self.covered and not (first and self.late)
        if gap and first and self.cut and frame.start <= self.deleted:
            passed = range(self.covered, frame.start)
            self._keep(_nothing(frame, passed), record.offset, 0)
            self.take(record, frame)
            return passed
        if gap or (self.following is not None and frame.start != self.following):
            expected = self.covered if self.following is None else self.following
            msg = (
                f"{record.topic}[{record.partition}] at offset {record.offset} answers for"
                f" documents from offset {frame.start}, but {expected} comes next: a frame"
                " was lost or doubled"
            )
            raise StageError(msg)
        self._keep(frame, record.offset + 1, answer_cost(record))
        return None

    def _keep(self, frame: MatchFrame, after: int, cost: int) -> None:
        """Keep what tiles, unless it is answered already."""
        if self.following is None:
            self.begin = frame.start
        self.following = frame.end
        self.cut = False
        if frame.end <= self.covered:
            return
        self.covered = frame.end
        self.taken.append(_Answer(frame, after, cost))
        self.cost += cost

    def drop(self, until: int) -> int | None:
        """Drop the answers up to an offset; return the offset after the last one, if any."""
        after = None
        while self.taken and self.taken[0].frame.end <= until:
            _, after, cost = self.taken.popleft()
            self.cost -= cost
        return after


def _nothing(following: MatchFrame, offsets: range) -> MatchFrame:
    """Return an answer for a range that names no document, to stand before this one."""
    place = msgspec.structs.replace(following, start=offsets.start, end=offsets.stop)
    return MatchFrame.nothing(place, following.shard)


@dataclass(slots=True)
class Lane:
    """One partition of ``documents`` with its answers.

    Documents before ``published`` are published; documents before ``arrived`` have all arrived.
    ``generations`` are the answers of all shards, by generation of the index, ascending.
    """

    published: int
    arrived: int
    generations: list[list[Answers]]
    using: int = 0
    """The place of the generation in use."""
    documents: deque[tuple[RecordBatch, int]] = field(default_factory=deque)
    """Those that wait, and how many bytes they take."""
    cost: int = 0
    """How many bytes all of them take."""

    @property
    def answers(self) -> list[Answers]:
        """Return the answers of the generation in use."""
        return self.generations[self.using]

    def _hand_over(self) -> None:
        """Use the next generation if its answers begin where this one's have ended."""
        following = self.using + 1
        if following < len(self.generations) and self._in_turn(self.generations[following]):
            self.using = following

    def _in_turn(self, answers: Iterable[Answers]) -> bool:
        """Return whether these answers go on from what is published."""
        return all(one.begin is not None and one.begin <= self.published for one in answers)

    def add(self, batch: RecordBatch) -> None:
        """Keep documents."""
        cost = batch_cost(batch)
        self.documents.append((batch, cost))
        self.cost += cost
        self.arrived = batch.end

    def take(self, until: int) -> list[RecordBatch]:
        """Remove and return the documents before an offset."""
        taken = []
        while self.documents and self.documents[0][0].offsets[0] < until:
            batch, cost = self.documents.popleft()
            if batch.end > until:
                row = int(np.searchsorted(batch.offsets, until))
                batch, rest = batch.rows(0, row), batch.rows(row, len(batch))
                cost -= (left := batch_cost(rest))
                self.documents.appendleft((rest, left))
            self.cost -= cost
            taken.append(batch)
        return taken

    def ready(self) -> int:
        """Return the offset up to which all answers and all documents are here."""
        covered = min(answers.covered for answers in self.answers)
        return covered if covered <= self.arrived else min(covered, self._documents_until())

    def _documents_until(self) -> int:
        """Return the offset before which no document is missing.

        Offsets that shard 0's answers don't name hold nothing to wait for: transaction markers
        and aborted records.
        """
        until = self.arrived
        for frame, _, _ in self.answers[0].taken:
            if frame.end <= until:
                continue
            until = next_named(frame, until)
            if until < frame.end:
                break
        return until

    def step(self, room: int) -> Step | None:
        """Return the answers for the next offsets that can be published, within one frame.

        Their documents take at most about ``room`` bytes, or there is just one.
        """
        self._hand_over()
        if any(one.late for one in self.answers) and not self._in_turn(self.answers):
            return None
        until = min(self.ready(), self._fits(room))
        if until <= self.published:
            return None
        heads = [answers.taken[0].frame for answers in self.answers]
        end = min(until, *(frame.end for frame in heads))
        found: dict[int, list[Found]] = {}
        for frame in heads:
            add_found(frame, self.published, end, found)
        refused = next((frame.refused for frame in heads if frame.refused is not None), None)
        return Step(end, heads[0], judged_of(heads[0], self.published, end), found, refused)

    def _fits(self, room: int) -> int:
        """Return before which offset documents fit into ``room`` bytes; the first always fits."""
        if self.cost <= room:
            return sys.maxsize
        for batch, cost in self.documents:
            if cost >= room:
                row = 1 + bisect_left(list(accumulate(row_costs(batch))), room)
                return batch.end if row >= len(batch) else int(batch.offsets[row])
            room -= cost
        return sys.maxsize

    def waits_in_vain(self) -> int | None:
        """Return the first waiting document's offset if its answer may have been deleted."""
        if not self.documents:
            return None
        first = int(self.documents[0][0].offsets[0])
        in_vain = any(answers.cut and answers.covered <= first for answers in self.answers)
        return first if in_vain else None

    def total(self) -> int:
        """Return the cost of everything that waits, in bytes."""
        return sum(self._costs())

    def _costs(self) -> list[int]:
        return [self.cost, *(one.cost for answers in self.generations for one in answers)]

    def ahead(self, share: float, held: Iterable[bool]) -> list[bool]:
        """Return which inputs to pause, the documents first; ``held`` are those paused now.

        An input is paused if the lane is nearly full and the input takes a good part of it. The
        input that the others wait for has nothing waiting itself, so it is never paused. The
        lane takes at most its share plus what one more poll returns.
        """
        costs = self._costs()
        total = sum(costs)
        own = share * (1 - _HIGH) / len(costs)
        return [
            total > share * _HIGH * band and cost > own * band
            for cost, band in zip(costs, (_RESUMED_AT if now else 1.0 for now in held), strict=True)
        ]


_log = logging.getLogger(__name__)

_SECONDS = 60.0


class Waits:
    """Logs, once a minute, documents that wait for answers that may have been deleted.

    Nothing else shows it: there is nothing left to read, so there is no lag.
    """

    def __init__(self, documents: str) -> None:
        """Take the topic of the documents."""
        self._documents = documents
        self._since: dict[int, tuple[int, float]] = {}

    def look(self, first: Mapping[int, int | None], now: float) -> None:
        """Log documents that have waited for a minute.

        ``first``: by partition, the offset of the first document that may wait in vain.
        ``now``: the time in seconds.
        """
        before, self._since = self._since, {}
        for partition, offset in first.items():
            if offset is None:
                continue
            known, since = before.get(partition, (offset, now))
            if known != offset:
                since = now
            elif now - since >= _SECONDS:
                since = now
                _log.error(
                    "%s[%d] offset %d: this document and those after it wait for answers that were"
                    " most likely deleted before they were read. See the runbook, 'Answers that"
                    " were deleted'",
                    self._documents,
                    partition,
                    offset,
                    extra={"topic": self._documents, "partition": partition, "offset": offset},
                )
            self._since[partition] = offset, since
