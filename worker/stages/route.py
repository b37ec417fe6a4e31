"""Route: joins documents with the shards' answers, and publishes the verdicts."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, compress

import numpy as np

from worker.bus import (
    AnyOutgoing,
    Outgoing,
    PartitionUnreadable,
    Record,
    RecordBatch,
    TopicPartition,
)
from worker.formats.match_writer import MatchWriter
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.stages.base import NOTHING, Burst, unread
from worker.stages.document_cache import DocumentCache
from worker.stages.guard import FirstCases
from worker.stages.lanes import Answers, Lane, Waits
from worker.stages.verdicts import Verdicts
from worker.topology import Topology
from worker.wire.codec import answer
from worker.wire.frame import SetAside, beyond
from worker.wire.headers import (
    REFUSED,
)

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
        cache: DocumentCache | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """Take where to read and write; ``following`` has the index's next generation.

        ``cache`` may have documents that are read by the same worker.
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
        self._cache = cache or DocumentCache(0)
        self._cached: set[TopicPartition] = set()
        """The documents that come from the cache."""
        self._first = FirstCases(_log)
        self._verdicts = Verdicts(topology, writer, same_partitions, self._first)

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
        self._cached = set()
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
        self._cache.publish_from({number: lane.published for number, lane in self._lanes.items()})
        return starts

    def _pass(self, documents: TopicPartition, after: int) -> int:
        """Note that no documents are left to read before an offset; return that."""
        lane = self._lanes[documents.partition]
        lane.arrived = max(lane.arrived, after)
        return after

    def _pass_quiet(self, quiet: Mapping[TopicPartition, int]) -> None:
        """Note which documents have all been read."""
        for place, position in quiet.items():
            if place.topic == self._documents:
                self._pass(place, position)

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
        batches: Sequence[RecordBatch],
        room: int = sys.maxsize,
        quiet: Mapping[TopicPartition, int] = NOTHING,
    ) -> Burst:
        """Buffer records, and return the verdicts that are complete; see `Stage`."""
        outgoing: list[AnyOutgoing] = []
        offsets: dict[TopicPartition, int] = {}
        verdicts = self._verdicts
        verdicts.begin(room)
        for batch in batches:
            if batch.place.topic != self._documents:
                for record in batch:
                    self._take_answer(record)
            elif late := self._take_documents(batch):
                outgoing += late
                offsets[batch.place] = self._lanes[batch.place.partition].published
        self._pass_quiet(quiet)
        starts = self._fill()
        for number, lane in list(self._lanes.items()):
            offsets.update(self._publish(number, lane, outgoing))
            if verdicts.room <= 0:
                self._lanes[number] = self._lanes.pop(number)  # The others come first next time.
                break
        for place, position in quiet.items():
            answers = self._answers.get(place)
            if answers is not None and not answers.taken:
                offsets[place] = position
        self._look()
        more = verdicts.room <= 0
        held = self._ahead() | self._cached
        size, epochs = room - verdicts.room, self._epochs(offsets)
        return Burst(outgoing, offsets, size, more, held, starts, epochs)

    def _epochs(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the leader epochs that are known of documents from the cache."""
        known = {
            place: self._cache.epoch(place.partition, offsets[place])
            for place in self._cached & offsets.keys()
        }
        return {place: epoch for place, epoch in known.items() if epoch is not None}

    def _fill(self) -> dict[TopicPartition, int]:
        """Take the documents from the cache that have their answers.

        Returns the documents that must be read from the log from now on, and from where.
        """
        starts: dict[TopicPartition, int] = {}
        for number, lane in self._lanes.items():
            documents = TopicPartition(self._documents, number)
            cut = any(answers.cut for answers in lane.answers)
            covered = max(lane.arrived, min(answers.covered for answers in lane.answers))
            taken = None if cut else self._cache.take(number, lane.arrived, covered)
            if taken is not None:
                self._cached.add(documents)
                for batch in taken.batches:
                    lane.add(batch)
                self._pass(documents, taken.reached)
            elif documents in self._cached:
                self._cached.discard(documents)
                starts[documents] = lane.arrived
        return starts

    def _take_documents(self, batch: RecordBatch) -> list[Outgoing]:
        """Keep documents; return the rejections of those where others were published before."""
        if batch.place in self._cached:
            return []  # They are in the cache, too.
        lane = self._lanes[batch.place.partition]
        late = int(np.searchsorted(batch.offsets, lane.published))
        if late < len(batch):
            lane.add(batch.rows(late, len(batch)))
        return list(map(self._verdicts.not_judged, batch.rows(0, late)))

    def _take_answer(self, record: Record) -> None:
        shard = self._shard_of[record.topic]
        frame = answer(record.value, self._layout_of[record.topic], shard)
        if frame is None or frame.partition != record.partition:
            said = f"passed over: {len(record.value or b'')} bytes that are no answer of this shard"
            self._first.tell("nothing", record, said, logging.ERROR)
            self._metrics.add(table.FRAMES_REFUSED, 1, self.name)
            return
        if frame.refused is not None:
            self._first.tell(REFUSED, record, f"no verdicts: {frame.refused}", logging.ERROR)
            self._metrics.add(table.FRAMES_REFUSED, 1, self.name)
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
        self, number: int, lane: Lane, outgoing: list[AnyOutgoing]
    ) -> dict[TopicPartition, int]:
        """Publish a lane's complete documents, as far as there is room; return the new offsets."""
        offsets: dict[TopicPartition, int] = {}
        verdicts = self._verdicts
        while verdicts.room > 0 and (step := lane.step(verdicts.room)) is not None:
            rest = step.judged
            for batch in lane.take(step.end):
                judged, rest = rest.split(batch.end)
                outgoing += verdicts.of(batch, judged, step)
            outgoing += (verdicts.gone(number, offset) for offset in rest.offsets.tolist())
            lane.published = step.end
            offsets[TopicPartition(self._documents, number)] = step.end
            for place in self._inputs[number][1:]:
                after = self._answers[place].drop(step.end)
                if after is not None:
                    offsets[place] = after
        return offsets

    def committed(self) -> None:
        """Count what was published."""
        self._verdicts.count(self._metrics)

    def _look(self) -> None:
        """Report, once a second, what waits, and documents that wait for deleted answers."""
        now = self._clock()
        if now - self._looked_at < 1.0:
            return
        self._looked_at = now
        waiting = self.waiting_bytes
        self._cache.wait_beside(waiting)
        self._metrics.set(table.MEMORY_BYTES, waiting + self._cache.cost, "lanes")
        self._waits.look(
            {number: lane.waits_in_vain() for number, lane in self._lanes.items()}, now
        )

    @property
    def waiting_bytes(self) -> int:
        """Return about how many bytes of documents and answers wait."""
        return sum(lane.total() for lane in self._lanes.values())

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
        self._cache.publish_from({})
