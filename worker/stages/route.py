"""Route: joins the documents with the shards' answers, and publishes the verdicts."""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from worker.bus import OffsetOutOfRange, Outgoing, Record, TopicPartition
from worker.frames import F32, POSITION_BITS, U16, U32, U64, MatchFrame, decode
from worker.headers import MATCHES, SEQUENCE, SOURCE, VERDICT, reduced_rejection, rejection
from worker.shard import Match
from worker.stages.base import Burst, StageError
from worker.stages.fingerprint import checksum
from worker.verdicts import MatchWriter

__all__ = ["Route", "RouteCounts"]

_log = logging.getLogger(__name__)


_AHEAD = 100_000
"""How many offsets a shard's answers may be ahead of the documents."""


class _Judged(NamedTuple):
    """What shard 0 says of a document: where it is, and what it was when it was signed."""

    offset: int
    checksum: int
    sequence: int


@dataclass(slots=True)
class RouteCounts:
    """What became of a burst, for metrics; ``oldest`` is the earliest record time, in ms."""

    unique: int = 0
    duplicate: int = 0
    lost: int = 0
    tombstones: int = 0
    timestamps: list[int] = field(default_factory=list)
    samples: list[tuple[bytes, bytes, float]] = field(default_factory=list)


@dataclass(slots=True)
class _Answers:
    """One shard's answers for one partition of ``documents``."""

    covered: int
    begun: bool = False
    taken: deque[tuple[int, int]] = field(default_factory=deque)
    """Frames not yet dealt with: (end of the range covered, offset after the frame)."""


@dataclass(slots=True)
class _Lane:
    """One partition of ``documents`` with its answers; ``published`` is where it stands."""

    published: int
    arrived: int
    documents: deque[Record] = field(default_factory=deque)
    bytes: int = 0
    answers: dict[int, _Answers] = field(default_factory=dict)
    judged: deque[_Judged] = field(default_factory=deque)
    matches: dict[int, list[Match]] = field(default_factory=dict)


class Route:
    """Merge-joins ``documents[n]`` with ``matches-p[n]`` of every shard p.

    A document is published once all shards' answers cover its offset. Works on a
    partition only while it owns all of its inputs.
    """

    name = "route"

    def __init__(  # noqa: PLR0913 -- the composition root's business
        self,
        *,
        documents: str,
        matches: Callable[[int], str],
        shards: int,
        unique: str,
        duplicate: str,
        rejected: str,
        layout: str,
        writer: MatchWriter,
        same_partitions: Mapping[str, bool],
        buffer_bytes: int = 64 << 20,
        on_burst: Callable[[RouteCounts], None] = lambda _counts: None,
    ) -> None:
        """Take topic names; ``same_partitions``: which outputs have as many as the input."""
        self._documents = documents
        self._shard_of = {matches(shard): shard for shard in range(shards)}
        self.topics = (documents, *self._shard_of)
        self._unique = unique
        self._duplicate = duplicate
        self._rejected = rejected
        self._layout = layout
        self._writer = writer
        self._same = same_partitions
        self._buffer_bytes = buffer_bytes
        self._on_burst = on_burst
        self._lanes: dict[int, _Lane] = {}
        self._held: frozenset[TopicPartition] = frozenset()
        self._counts = RouteCounts()
        self._room = sys.maxsize

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],  # noqa: ARG002 -- port
    ) -> dict[TopicPartition, int]:
        """Begin each lane at its committed offsets, with nothing buffered."""
        self._lanes = {}
        self._held = frozenset()
        self._room = sys.maxsize
        starts = {}
        for (topic, number), offset in offsets.items():
            if topic != self._documents:
                continue
            inputs = [TopicPartition(answers, number) for answers in self._shard_of]
            if not all(answers in offsets for answers in inputs):
                _log.warning("partition %d waits: this worker has not all of its inputs", number)
                continue
            self._lanes[number] = _Lane(
                offset, offset, answers={s: _Answers(offset) for s in self._shard_of.values()}
            )
            starts[TopicPartition(topic, number)] = offset
            starts.update({answers: offsets[answers] for answers in inputs})
        return starts

    def started(self) -> Mapping[TopicPartition, int]:
        """Nothing has to be got ready."""
        return {}

    @property
    def pending(self) -> bool:
        """Tell whether more is complete than there was room for."""
        return self._room <= 0

    def process(self, records: Sequence[Record], room: int = sys.maxsize) -> Burst | None:
        """Buffer what came, and publish what is complete; see `Stage`."""
        for record in records:
            lane = self._lanes[record.partition]
            if record.topic == self._documents:
                lane.documents.append(record)
                lane.bytes += len(record.value or b"") + len(record.key or b"")
                lane.arrived = record.offset + 1
            else:
                self._take_answer(lane, self._shard_of[record.topic], record)
        outgoing: list[Outgoing] = []
        offsets: dict[TopicPartition, int] = {}
        self._counts = RouteCounts()
        self._room = room
        for number, lane in list(self._lanes.items()):
            offsets.update(self._publish(number, lane, outgoing))
            if self._room <= 0:
                self._lanes[number] = self._lanes.pop(number)  # The others come first next time.
                break
        return Burst(outgoing, offsets, room - self._room) if offsets else None

    def _take_answer(self, lane: _Lane, shard: int, record: Record) -> None:
        frame = decode(MatchFrame, record.value, self._layout)
        answers = lane.answers[shard]
        if (frame.shard, frame.partition) != (shard, record.partition):
            msg = (
                f"{record.topic}[{record.partition}] holds an answer of shard {frame.shard} for"
                f" partition {frame.partition}"
            )
            raise StageError(msg)
        # The first frame after a start may begin before what is published; none may leave a gap.
        if frame.start > answers.covered or (answers.begun and frame.start != answers.covered):
            msg = (
                f"{record.topic}[{record.partition}] at offset {record.offset} answers for"
                f" documents from offset {frame.start}, and {answers.covered} comes next: a frame"
                " was lost or doubled"
            )
            raise StageError(msg)
        answers.begun = True
        answers.covered = max(answers.covered, frame.end)
        answers.taken.append((frame.end, record.offset + 1))
        if frame.end <= lane.published:
            return
        if shard == 0:
            offsets = (np.frombuffer(frame.offsets, U32).astype(np.int64) + frame.start).tolist()
            checksums = np.frombuffer(frame.checksums, U64).tolist()
            sequence = (frame.number << POSITION_BITS) + frame.first
            lane.judged.extend(
                _Judged(offset, check, sequence + position)
                for position, (offset, check) in enumerate(zip(offsets, checksums, strict=True))
                if offset >= lane.published
            )
        _add_matches(lane, frame)

    def _publish(
        self, number: int, lane: _Lane, outgoing: list[Outgoing]
    ) -> dict[TopicPartition, int]:
        """Publish a lane's documents up to where all answers, and all documents, are there.

        Less, if there is no room for more.
        """
        until = min(lane.arrived, *(answers.covered for answers in lane.answers.values()))
        if until <= lane.published:
            return {}
        while lane.documents and lane.documents[0].offset < until:
            if self._room <= 0:
                until = lane.documents[0].offset
                break
            written = len(outgoing)
            self._publish_next(number, lane, outgoing)
            for sent in outgoing[written:]:
                self._room -= sent.size
        while lane.judged and lane.judged[0].offset < until:
            outgoing.append(self._lost(number, lane, lane.judged.popleft()))
        lane.published = until
        offsets = {TopicPartition(self._documents, number): until}
        for topic, shard in self._shard_of.items():
            answers = lane.answers[shard]
            after = None
            while answers.taken and answers.taken[0][0] <= until:
                _, after = answers.taken.popleft()
            if after is not None:
                offsets[TopicPartition(topic, number)] = after
        return offsets

    def _publish_next(self, number: int, lane: _Lane, outgoing: list[Outgoing]) -> None:
        """Publish a lane's next document, after those before it that the topic has lost."""
        record = lane.documents.popleft()
        lane.bytes -= len(record.value or b"") + len(record.key or b"")
        while lane.judged and lane.judged[0].offset < record.offset:
            outgoing.append(self._lost(number, lane, lane.judged.popleft()))
        if record.value is None:
            self._pass_tombstone(record, outgoing)
        elif lane.judged and lane.judged[0].offset == record.offset:
            outgoing.append(self._verdict(record, lane, lane.judged.popleft()))

    def _verdict(self, record: Record, lane: _Lane, judged: _Judged) -> Outgoing:
        value = record.value or b""
        if checksum(value) != judged.checksum:
            return self._changed(record, lane, judged)
        matches = lane.matches.pop(record.offset, None)
        source = b"%s-%d-%d" % (record.topic.encode(), record.partition, record.offset)
        own = [
            (VERDICT, b"duplicate" if matches else b"unique"),
            (SEQUENCE, b"%d" % judged.sequence),
            (SOURCE, source),
        ]
        topic = self._unique
        if matches:
            topic = self._duplicate
            value, listed = self._writer.write(record, _best(matches))
            own.append((MATCHES, listed))
            self._counts.duplicate += 1
        else:
            self._counts.unique += 1
        if record.timestamp >= 0:
            self._counts.timestamps.append(record.timestamp)
        return self._forward(topic, record, value, (*record.headers, *own))

    def _forward(
        self,
        topic: str,
        record: Record,
        value: bytes | None,
        headers: tuple[tuple[str, bytes | None], ...],
    ) -> Outgoing:
        return Outgoing(
            topic,
            record.partition if self._same[topic] else None,
            record.key,
            value,
            headers,
            record.timestamp if record.timestamp >= 0 else None,
        )

    def _pass_tombstone(self, record: Record, outgoing: list[Outgoing]) -> None:
        """Hand it to both outputs, so that compacted copies of either forget too."""
        self._counts.tombstones += 1
        outgoing += [
            self._forward(topic, record, None, record.headers)
            for topic in (self._unique, self._duplicate)
        ]

    def _changed(self, record: Record, lane: _Lane, judged: _Judged) -> Outgoing:
        lane.matches.pop(judged.offset, None)
        self._counts.lost += 1
        reason = "payload-changed: its checksum is not that of the document that was judged"
        _log.error("%s[%d] offset %d: %s", record.topic, record.partition, record.offset, reason)
        return self._forward(
            self._rejected, record, record.value, rejection(record, self.name, reason)
        )

    def _lost(self, number: int, lane: _Lane, judged: _Judged) -> Outgoing:
        lane.matches.pop(judged.offset, None)
        self._counts.lost += 1
        reason = "payload-gone: the document was deleted from the topic after it was judged"
        _log.error("%s[%d] offset %d: %s", self._documents, number, judged.offset, reason)
        record = Record(self._documents, number, judged.offset, -1, None, None)
        return self._forward(self._rejected, record, None, rejection(record, self.name, reason))

    def settle(self, positions: Mapping[TopicPartition, int]) -> Burst | None:
        """Take it that no more documents come before here, nor answers; see `Stage`."""
        for (topic, number), position in positions.items():
            if topic == self._documents:
                lane = self._lanes[number]
                lane.arrived = max(lane.arrived, position)
        burst = self.process(()) or Burst((), {})
        offsets = dict(burst.offsets)
        for place, position in positions.items():
            shard = self._shard_of.get(place.topic)
            if shard is not None and not self._lanes[place.partition].answers[shard].taken:
                offsets[place] = position
        return Burst(burst.records, offsets) if offsets else None

    def reduced(self, record: Outgoing) -> Outgoing | None:
        """Say of a rejected record where it is to be found, if it can't be published."""
        return reduced_rejection(record) if record.topic == self._rejected else None

    def committed(self) -> None:
        """Count what was published."""
        self._on_burst(self._counts)
        self._counts = RouteCounts()

    def idle(self) -> None:
        """Nothing is due."""

    def paused(self) -> frozenset[TopicPartition]:
        """Hold back whichever has run ahead: the documents, or the answers.

        To pause throws away what was fetched, so there is a wide band between where
        that begins and where it ends.
        """
        share = self._buffer_bytes / max(1, len(self._lanes))
        held = set()
        for number, lane in self._lanes.items():
            partition = TopicPartition(self._documents, number)
            if lane.bytes > (share / 4 if partition in self._held else share):
                held.add(partition)
            for topic, shard in self._shard_of.items():
                partition = TopicPartition(topic, number)
                ahead = lane.answers[shard].covered - lane.arrived
                if ahead > (_AHEAD // 4 if partition in self._held else _AHEAD):
                    held.add(partition)
        self._held = frozenset(held)
        return self._held

    def out_of_range(self, error: OffsetOutOfRange) -> int:
        """Go on after documents that the topic has lost; each is published as *rejected*.

        Raises:
            StageError: it is answers that are lost.
        """
        if error.partition.topic != self._documents or error.position >= error.low:
            msg = f"{error}: see `neardup topics verify`"
            raise StageError(msg)
        lane = self._lanes[error.partition.partition]
        lane.arrived = max(lane.arrived, error.low)
        _log.error("%s: documents were deleted before they were published", error)
        return error.low

    def lag_bytes(self) -> int:
        """Give the size of the documents that wait for answers."""
        return sum(lane.bytes for lane in self._lanes.values())

    def close(self) -> None:
        """Drop the buffers."""
        self._lanes = {}


def _add_matches(lane: _Lane, frame: MatchFrame) -> None:
    offsets = (np.frombuffer(frame.matched, U32).astype(np.int64) + frame.start).tolist()
    counts = np.frombuffer(frame.counts, U16).tolist()
    found = zip(
        np.frombuffer(frame.sequences, U64).tolist(),
        np.frombuffer(frame.similarities, F32).tolist(),
        frame.ids.unpack(),
        strict=True,
    )
    for offset, count in zip(offsets, counts, strict=True):
        own = [Match(*next(found)) for _ in range(count)]
        if offset >= lane.published:
            lane.matches.setdefault(offset, []).extend(own)


def _best(matches: list[Match]) -> list[Match]:
    """Merge the shards' answers: a document once, best first, ties by sequence."""
    distinct = {match.sequence: match for match in matches}
    return sorted(distinct.values(), key=lambda match: (-match.similarity, match.sequence))
