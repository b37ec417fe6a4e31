"""Route: joins documents with the shards' answers and publishes the verdicts."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, compress

from worker.bus import Outgoing, PartitionUnreadable, Record, TopicPartition
from worker.formats.match_writer import MatchWriter
from worker.metrics import Metrics, Tally, table
from worker.stages.base import NOTHING, Burst, StageError, unread
from worker.stages.framing import checksum
from worker.stages.lanes import Answers, Lane, Step
from worker.stages.unpacking import Found, Judged, best
from worker.stages.waits import Waits
from worker.topology import Topology
from worker.wire import MatchFrame, SetAside, beyond, decode
from worker.wire.headers import (
    FIRST,
    MATCHES,
    NOT_JUDGED,
    SEQUENCE,
    SOURCE,
    VERDICT,
    rejection,
    without_own,
)

__all__ = ["Route"]

_log = logging.getLogger(__name__)


class Route:
    """Merge-joins ``documents[n]`` with ``matches-p[n]`` of every shard p.

    A document is published once all shards' answers cover its offset. A partition is
    processed only while this worker owns all of its inputs. While an index is replaced by its
    next generation, the answers of both are inputs; see `Lane`.
    """

    name = "route"
    shards = None

    def __init__(  # noqa: PLR0913 -- the composition root's business
        self,
        topology: Topology,
        following: Topology | None = None,
        *,
        writer: MatchWriter,
        same_partitions: Mapping[str, bool],
        clock: Callable[[], float],
        buffer_bytes: int = 64 << 20,
        aside: Sequence[SetAside] = (),
        metrics: Metrics | None = None,
    ) -> None:
        """Take where to read and write; ``following`` has the index's next generation.

        ``same_partitions``: which outputs have as many partitions as the input. ``clock`` returns
        seconds from an unknown start. ``aside``: the ranges of documents that are not read:
        *fingerprint* rejects them.
        """
        self._documents = topology.documents
        both = (topology,) if following is None else (topology, following)
        self._generations = [
            [one.matches(shard) for shard in range(one.layout.shards)] for one in both
        ]
        self._layout_of = {
            topic: one.layout.id
            for one, topics in zip(both, self._generations, strict=True)
            for topic in topics
        }
        self._shard_of = {
            topic: shard for topics in self._generations for shard, topic in enumerate(topics)
        }
        self._unique = topology.unique
        self._duplicate = topology.duplicate
        self._rejected = topology.rejected
        self._writer = writer
        self._same = same_partitions
        self._aside = aside
        self._buffer_bytes = buffer_bytes
        self._metrics = metrics or Metrics()
        self._clock = clock
        self._looked_at = clock()
        self._waits = Waits(self._documents)
        self._lanes: dict[int, Lane] = {}
        self._answers: dict[TopicPartition, Answers] = {}
        self._inputs: dict[int, list[TopicPartition]] = {}
        self._held: frozenset[TopicPartition] = frozenset()
        self._tally = Tally()
        self._unique_count = self._duplicate_count = 0
        self._timestamps: list[int] = []
        self._room = sys.maxsize

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Start each lane at its committed offsets, with empty buffers.

        If retention has deleted a log past its offset, continue from the log's start: anything
        missing is detected later: judged documents that were deleted are published as *rejected*,
        and a lost answer is noticed with the next one, see `Answers.take`.
        """
        self._lanes = {}
        self._answers = {}
        self._inputs = {}
        self._held = frozenset()
        self._room = sys.maxsize
        starts = {}
        for (topic, number), offset in offsets.items():
            if topic != self._documents:
                continue
            generations = self._owned(number, offsets)
            if not generations:
                _log.warning(
                    "partition %d waits: this worker lacks some of its inputs",
                    number,
                    extra={"topic": topic, "partition": number},
                )
                continue
            documents = TopicPartition(topic, number)
            inputs = [documents, *chain.from_iterable(generations.values())]
            self._inputs[number] = inputs
            begin = {place: max(offsets[place], watermarks(place)[0]) for place in inputs}
            for generation, places in generations.items():
                self._answers |= {
                    place: Answers(
                        offset,
                        cut=begin[place] > offsets[place],
                        late=generation > 0,
                        deleted=begin[documents],
                    )
                    for place in places
                }
            self._lanes[number] = Lane(
                offset,
                begin[documents],
                [[self._answers[place] for place in places] for places in generations.values()],
            )
            for place, start in begin.items():
                if start > offsets[place]:
                    _log.info(
                        "%s[%d] now begins at offset %d; this group had read up to %d",
                        *place, start, offsets[place],
                        extra=place._asdict(),
                    )  # fmt: skip
            starts.update(begin)
            after = beyond(self._aside, number, begin[documents])
            if after is not None:
                starts[documents] = self._pass(documents, after)
        return starts

    def _pass(self, documents: TopicPartition, after: int) -> int:
        """Note that no documents are left to read before an offset; return that."""
        lane = self._lanes[documents.partition]
        lane.arrived = max(lane.arrived, after)
        return after

    def unreadable(self, error: PartitionUnreadable) -> int | None:
        """Pass documents that are set aside; see `Stage`."""
        place = error.partition
        if place.topic != self._documents:
            raise error
        after = beyond(self._aside, place.partition, error.position)
        if after is None:
            raise unread(error)
        return self._pass(place, after)

    def _owned(
        self, number: int, offsets: Mapping[TopicPartition, int]
    ) -> dict[int, list[TopicPartition]]:
        """Return the answers to a partition by generation, of those that are owned completely.

        While workers take up a generation, one by one, some own the answers of one only.
        """
        found = {
            generation: [TopicPartition(topic, number) for topic in topics]
            for generation, topics in enumerate(self._generations)
        }
        return {
            generation: places
            for generation, places in found.items()
            if all(place in offsets for place in places)
        }

    def process(
        self,
        records: Sequence[Record],
        room: int = sys.maxsize,
        quiet: Mapping[TopicPartition, int] = NOTHING,
    ) -> Burst:
        """Buffer records, and return the verdicts that are complete; see `Stage`."""
        outgoing: list[Outgoing] = []
        offsets: dict[TopicPartition, int] = {}
        self._clear_counts()
        for record in records:
            lane = self._lanes[record.partition]
            if record.topic != self._documents:
                self._take_answer(record)
            elif record.offset < lane.published:
                outgoing.append(self._not_judged(record))
                offsets[TopicPartition(record.topic, record.partition)] = lane.published
            else:
                lane.add(record)
        for place, position in quiet.items():
            if place.topic == self._documents:
                self._pass(place, position)
        self._room = room
        for number, lane in list(self._lanes.items()):
            offsets.update(self._publish(number, lane, outgoing))
            if self._room <= 0:
                self._lanes[number] = self._lanes.pop(number)  # The others come first next time.
                break
        for place, position in quiet.items():
            answers = self._answers.get(place)
            if answers is not None and not answers.taken:
                offsets[place] = position
        self._look()
        more = self._room <= 0
        return Burst(outgoing, offsets, room - self._room, more=more, held=self._ahead())

    def _take_answer(self, record: Record) -> None:
        shard = self._shard_of[record.topic]
        frame = decode(MatchFrame, record.value, self._layout_of[record.topic])
        if (frame.shard, frame.partition) != (shard, record.partition):
            msg = (
                f"{record.topic}[{record.partition}] holds an answer of shard {frame.shard} for"
                f" partition {frame.partition}"
            )
            raise StageError(msg)
        passed = self._answers[TopicPartition(record.topic, record.partition)].take(record, frame)
        if passed is not None and shard == 0:  # Only its answers name the documents.
            self._deleted(record.partition, passed)

    def _deleted(self, number: int, offsets: range) -> None:
        """Report documents that nobody can name any more: their answers were deleted as well."""
        _log.error(
            "%s[%d]: offsets %d to %d were deleted, and so were their answers. Documents that were"
            " judged there, if any, are published nowhere",
            self._documents, number, offsets[0], offsets[-1],
            extra={"topic": self._documents, "partition": number},
        )  # fmt: skip

    def _publish(
        self, number: int, lane: Lane, outgoing: list[Outgoing]
    ) -> dict[TopicPartition, int]:
        """Publish a lane's complete documents, as far as there is room; return the new offsets."""
        offsets: dict[TopicPartition, int] = {}
        while self._room > 0 and (step := lane.step(self._room)) is not None:
            published = list(self._outcomes(number, lane, step))
            self._room -= sum(record.size for record in published)
            outgoing += published
            lane.published = step.end
            offsets[TopicPartition(self._documents, number)] = step.end
            for place in self._inputs[number][1:]:
                after = self._answers[place].drop(step.end)
                if after is not None:
                    offsets[place] = after
        return offsets

    def _outcomes(self, number: int, lane: Lane, step: Step) -> Iterator[Outgoing]:
        """Return what to publish for each document of a step, in order."""
        judged = step.judged
        for record in lane.take(step.end):
            offset = record.offset
            while judged and judged[0].offset < offset:
                yield self._gone(number, judged.popleft())
            if record.value is None or offset in step.forgetting:
                yield from self._pass_on(record)
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
        matches = best(found, self._writer.max_matches) if found else []
        own = [
            (VERDICT, b"duplicate" if matches else b"unique"),
            (SEQUENCE, b"%d" % judged.sequence),
            (SOURCE, source),
        ]
        topic = self._unique
        if matches:
            topic = self._duplicate
            value, listed, first = self._writer.write(record, matches)
            own += [(MATCHES, listed), (FIRST, first)]
            self._duplicate_count += 1
        else:
            self._unique_count += 1
        if record.timestamp >= 0:
            self._timestamps.append(record.timestamp)
        return self._forward(topic, record, value, (*without_own(record.headers), *own))

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

    def _pass_on(self, record: Record) -> Iterator[Outgoing]:
        """Send a tombstone, or a delete with a value, to both outputs.

        Whoever reads one of them, or compacts it, has to delete the document as well.
        """
        self._tally.add(table.TOMBSTONES)
        for topic in (self._unique, self._duplicate):
            yield self._forward(topic, record, record.value, without_own(record.headers))

    def _changed(self, record: Record) -> Outgoing:
        reason = "payload-changed: its checksum is not that of the document that was judged"
        return self._reject(record, reason)

    def _gone(self, number: int, judged: Judged) -> Outgoing:
        reason = "payload-gone: the document was deleted from the topic after it was judged"
        return self._reject(Record(self._documents, number, judged.offset, -1, None, None), reason)

    def _not_judged(self, record: Record) -> Outgoing:
        return self._reject(record, NOT_JUDGED)

    def _reject(self, record: Record, reason: str) -> Outgoing:
        self._tally.add(table.DOCUMENTS, 1, "rejected")
        self._tally.add(table.REJECTED, 1, reason.partition(":")[0])
        place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
        _log.error("%s[%d] offset %d: %s", *place.values(), reason, extra=place)
        return self._forward(
            self._rejected, record, record.value, rejection(record, self.name, reason)
        )

    def committed(self) -> None:
        """Count what was published."""
        metrics, now = self._metrics, self._metrics.clock()
        metrics.add(table.DOCUMENTS, self._unique_count, "unique")
        metrics.add(table.DOCUMENTS, self._duplicate_count, "duplicate")
        metrics.observe(
            table.LATENCY_SECONDS,
            [max(0.0, now - timestamp / 1_000) for timestamp in self._timestamps],
        )
        self._tally.commit(metrics)
        self._clear_counts()

    def _clear_counts(self) -> None:
        """Begin to count a transaction. What is counted for each document has no tally."""
        self._tally.clear()
        self._unique_count = self._duplicate_count = 0
        self._timestamps = []

    def _look(self) -> None:
        """Report, once a second, what waits, and documents that wait for deleted answers."""
        now = self._clock()
        if now - self._looked_at < 1.0:
            return
        self._looked_at = now
        waiting = sum(lane.total() for lane in self._lanes.values())
        self._metrics.set(table.MEMORY_BYTES, waiting, "lanes")
        self._waits.look(
            {number: lane.waits_in_vain() for number, lane in self._lanes.items()}, now
        )

    def _ahead(self) -> frozenset[TopicPartition]:
        """Return the inputs that have run ahead, documents or answers; see `Lane.ahead`."""
        share = self._buffer_bytes / max(1, len(self._lanes))
        held: set[TopicPartition] = set()
        for number, lane in self._lanes.items():
            inputs = self._inputs[number]
            ahead = lane.ahead(share, [place in self._held for place in inputs])
            held.update(compress(inputs, ahead))
        self._held = frozenset(held)
        return self._held

    def close(self) -> None:
        """Drop the buffers."""
        self._lanes = {}
