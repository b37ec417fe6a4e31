"""Route: joins the documents with the shards' answers, and publishes the verdicts."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from time import monotonic

from worker.bus import OffsetOutOfRange, Outgoing, Record, TopicPartition
from worker.frames import MatchFrame, decode
from worker.headers import MATCHES, SEQUENCE, SOURCE, VERDICT, reduced_rejection, rejection
from worker.stages.base import Burst, StageError
from worker.stages.fingerprint import checksum
from worker.stages.lanes import Answers, Lane, Step
from worker.stages.unpacking import Found, Judged, best
from worker.stages.waits import Waits
from worker.verdicts import MatchWriter

__all__ = ["Route", "RouteCounts"]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RouteCounts:
    """What became of a burst, for metrics; ``lost`` by the reason's code, times in ms."""

    unique: int = 0
    duplicate: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    tombstones: int = 0
    timestamps: list[int] = field(default_factory=list)
    samples: list[tuple[bytes, bytes, float]] = field(default_factory=list)


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
        clock: Callable[[], float] = monotonic,
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
        self._clock = clock
        self._waits = Waits(documents)
        self._lanes: dict[int, Lane] = {}
        self._held: frozenset[TopicPartition] = frozenset()
        self._counts = RouteCounts()
        self._room = sys.maxsize

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Begin each lane at its committed offsets, with nothing buffered.

        Where retention has emptied a log past its offset, go on from the log's start: what is
        missing shows by itself, see `out_of_range`.
        """
        self._lanes = {}
        self._held = frozenset()
        self._room = sys.maxsize
        starts = {}
        for (topic, number), offset in offsets.items():
            if topic != self._documents:
                continue
            inputs = [TopicPartition(name, number) for name in self.topics]
            if not all(place in offsets for place in inputs):
                _log.warning("partition %d waits: this worker has not all of its inputs", number)
                continue
            begin = {place: max(offsets[place], watermarks(place)[0]) for place in inputs}
            self._lanes[number] = Lane(
                offset,
                begin[inputs[0]],
                [Answers(offset, cut=begin[place] > offsets[place]) for place in inputs[1:]],
            )
            for place, start in begin.items():
                if start > offsets[place]:
                    _log.info(
                        "%s[%d] begins at offset %d by now; this group had read up to %d",
                        *place, start, offsets[place],
                    )  # fmt: skip
            starts.update(begin)
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
        outgoing: list[Outgoing] = []
        offsets: dict[TopicPartition, int] = {}
        self._counts = RouteCounts()
        for record in records:
            lane = self._lanes[record.partition]
            if record.topic != self._documents:
                self._take_answer(lane, self._shard_of[record.topic], record)
            elif record.offset < lane.published:
                outgoing.append(self._not_judged(record))
                offsets[TopicPartition(record.topic, record.partition)] = lane.published
            else:
                lane.add(record)
        self._room = room
        for number, lane in list(self._lanes.items()):
            offsets.update(self._publish(number, lane, outgoing))
            if self._room <= 0:
                self._lanes[number] = self._lanes.pop(number)  # The others come first next time.
                break
        return Burst(outgoing, offsets, room - self._room) if offsets else None

    def _take_answer(self, lane: Lane, shard: int, record: Record) -> None:
        frame = decode(MatchFrame, record.value, self._layout)
        if (frame.shard, frame.partition) != (shard, record.partition):
            msg = (
                f"{record.topic}[{record.partition}] holds an answer of shard {frame.shard} for"
                f" partition {frame.partition}"
            )
            raise StageError(msg)
        lane.answers[shard].take(record, frame)

    def _publish(
        self, number: int, lane: Lane, outgoing: list[Outgoing]
    ) -> dict[TopicPartition, int]:
        """Publish a lane's documents up to where all answers, and all documents, are there.

        Fewer, if there is no room for more.
        """
        offsets: dict[TopicPartition, int] = {}
        while self._room > 0 and (step := lane.step(self._room)) is not None:
            published = list(self._outcomes(number, lane, step))
            self._room -= sum(record.size for record in published)
            outgoing += published
            lane.published = step.end
            offsets[TopicPartition(self._documents, number)] = step.end
            for topic, shard in self._shard_of.items():
                after = lane.answers[shard].drop(step.end)
                if after is not None:
                    offsets[TopicPartition(topic, number)] = after
        return offsets

    def _outcomes(self, number: int, lane: Lane, step: Step) -> Iterator[Outgoing]:
        """Say what becomes of each document of a step, in their order."""
        judged = step.judged
        for record in lane.take(step.end):
            offset = record.offset
            while judged and judged[0].offset < offset:
                yield self._gone(number, judged.popleft())
            if record.value is None:
                yield from self._pass_tombstone(record)
            elif judged and judged[0].offset == offset:
                yield self._verdict(record, judged.popleft(), step.found.get(offset))
            elif step.accounted is not None and offset not in step.accounted:
                yield self._not_judged(record)
        while judged:
            yield self._gone(number, judged.popleft())

    def _verdict(self, record: Record, judged: Judged, found: list[Found] | None) -> Outgoing:
        value = record.value or b""
        if checksum(value) != judged.checksum:
            return self._changed(record)
        source = b"%s-%d-%d" % (record.topic.encode(), record.partition, record.offset)
        own = [
            (VERDICT, b"duplicate" if found else b"unique"),
            (SEQUENCE, b"%d" % judged.sequence),
            (SOURCE, source),
        ]
        topic = self._unique
        if found:
            topic = self._duplicate
            value, listed = self._writer.write(record, best(found))
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

    def _pass_tombstone(self, record: Record) -> Iterator[Outgoing]:
        """Hand it to both outputs, so that compacted copies of either forget too."""
        self._counts.tombstones += 1
        for topic in (self._unique, self._duplicate):
            yield self._forward(topic, record, None, record.headers)

    def _changed(self, record: Record) -> Outgoing:
        reason = "payload-changed: its checksum is not that of the document that was judged"
        return self._reject(record, reason)

    def _gone(self, number: int, judged: Judged) -> Outgoing:
        reason = "payload-gone: the document was deleted from the topic after it was judged"
        return self._reject(Record(self._documents, number, judged.offset, -1, None, None), reason)

    def _not_judged(self, record: Record) -> Outgoing:
        reason = (
            "not-judged: it was written where fingerprint had read already; the topic was truncated"
            " and has grown again"
        )
        return self._reject(record, reason)

    def _reject(self, record: Record, reason: str) -> Outgoing:
        self._counts.lost[reason.partition(":")[0]] += 1
        _log.error("%s[%d] offset %d: %s", record.topic, record.partition, record.offset, reason)
        return self._forward(
            self._rejected, record, record.value, rejection(record, self.name, reason)
        )

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
        """Report documents that wait for answers that were deleted."""
        self._waits.look(
            {number: lane.waits_in_vain() for number, lane in self._lanes.items()}, self._clock()
        )

    def paused(self) -> frozenset[TopicPartition]:
        """Hold back whichever has run ahead: the documents, or answers; see `Lane.ahead`."""
        share = self._buffer_bytes / max(1, len(self._lanes))
        held: set[TopicPartition] = set()
        for number, lane in self._lanes.items():
            inputs = [TopicPartition(topic, number) for topic in self.topics]
            ahead = lane.ahead(share, [place in self._held for place in inputs])
            held.update(compress(inputs, ahead))
        self._held = frozenset(held)
        return self._held

    def out_of_range(self, error: OffsetOutOfRange) -> int:
        """Go on from the log's start, if that is above the position.

        Documents that were judged and are gone are published as *rejected*. Behind the last
        answers lie the markers of their transactions, which retention deletes in time; if it
        was an answer, the next one does not tile.

        Raises:
            StageError: the position is above the log's end.
        """
        if error.position >= error.low:
            msg = f"{error}: see `neardup topics verify`"
            raise StageError(msg)
        lane = self._lanes[error.partition.partition]
        if error.partition.topic == self._documents:
            lane.arrived = max(lane.arrived, error.low)
        else:
            lane.answers[self._shard_of[error.partition.topic]].cut = True
        _log.warning("%s; going on from its start", error)
        return error.low

    def close(self) -> None:
        """Drop the buffers."""
        self._lanes = {}
