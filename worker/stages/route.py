"""Route: joins documents with the shards' answers and publishes the verdicts."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worker.bus import (
    AnyOutgoing,
    Header,
    Outgoing,
    OutgoingBatch,
    PartitionUnreadable,
    Record,
    RecordBatch,
    TopicPartition,
)
from worker.formats.base import headers_size
from worker.formats.match_writer import MatchWriter
from worker.metrics import table
from worker.metrics.metrics import Metrics, Tally
from worker.stages.answers import Found, Judged, allowance, best
from worker.stages.base import NOTHING, Burst, unread
from worker.stages.document_cache import DocumentCache
from worker.stages.framing import checksums
from worker.stages.guard import FirstCases
from worker.stages.lanes import Answers, Lane, Step, Waits
from worker.topology import Topology
from worker.visible import excerpt
from worker.wire.codec import answer
from worker.wire.frame import SetAside, beyond
from worker.wire.headers import (
    ALLOWED_BY,
    FIRST,
    MATCHES,
    NOT_JUDGED,
    REFUSED,
    SEQUENCE,
    SOURCE,
    VERDICT,
    corrects,
    rejection,
    without_own,
)

_log = logging.getLogger(__name__)

_UNIQUE: Header = (VERDICT, b"unique")
_DUPLICATE: Header = (VERDICT, b"duplicate")
_CHARACTERS = 300
_OWN_BYTES = len(VERDICT) + len(SEQUENCE) + len(SOURCE) + 90
"""About how many bytes the headers of every verdict take."""


class _Verdict(NamedTuple):
    """What is published of a document that has matches, beside what every document has."""

    verdict: Header
    value: bytes | None
    headers: tuple[Header, ...]


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
        self._cache = cache or DocumentCache(0)
        self._cached: set[TopicPartition] = set()
        """The documents that come from the cache."""
        self._tally = Tally()
        self._first = FirstCases(_log)
        self._unique_count = self._duplicate_count = 0
        self._timestamps: list[npt.NDArray[np.int64]] = []
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
        self._cached = set()
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
        self._clear_counts()
        self._room = room
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
            if self._room <= 0:
                self._lanes[number] = self._lanes.pop(number)  # The others come first next time.
                break
        for place, position in quiet.items():
            answers = self._answers.get(place)
            if answers is not None and not answers.taken:
                offsets[place] = position
        self._look()
        more = self._room <= 0
        held = self._ahead() | self._cached
        size, epochs = room - self._room, self._epochs(offsets)
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
        return list(map(self._not_judged, batch.rows(0, late)))

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
        while self._room > 0 and (step := lane.step(self._room)) is not None:
            rest = step.judged
            for batch in lane.take(step.end):
                judged, rest = rest.split(batch.end)
                outgoing += self._outcomes(batch, judged, step)
            outgoing += (self._gone(number, offset) for offset in rest.offsets.tolist())
            lane.published = step.end
            offsets[TopicPartition(self._documents, number)] = step.end
            for place in self._inputs[number][1:]:
                after = self._answers[place].drop(step.end)
                if after is not None:
                    offsets[place] = after
        return offsets

    def _outcomes(self, batch: RecordBatch, judged: Judged, step: Step) -> Iterator[AnyOutgoing]:
        """Return what to publish of waiting documents, and of judged ones that are gone, in order.

        Those that are what was judged follow each other in long runs.
        """
        number = batch.place.partition
        if step.refused is not None:
            yield from self._refused(batch, step)
            missing = np.setdiff1d(judged.offsets, batch.offsets, assume_unique=True)
            yield from (self._gone(number, gone) for gone in missing.tolist())
            return
        at, there = judged.rows_of(batch.offsets)
        same = np.zeros(len(batch), bool)
        same[there] = checksums(compress(batch.values, there)) == judged.checksums[at[there]]
        same &= [value is not None for value in batch.values]
        goes_on = same[1:] & same[:-1] & (np.diff(at) == 1)
        cuts = [*(np.flatnonzero(~goes_on) + 1).tolist(), len(batch)]
        named: tuple[frozenset[int], frozenset[int]] | None = None
        row = done = 0
        for cut in cuts:
            first = int(at[row])
            yield from (self._gone(number, gone) for gone in judged.offsets[done:first].tolist())
            if same[row]:
                yield from self._verdicts(batch.rows(row, cut), judged.sequence + first, step.found)
            else:
                named = named or step.named()
                yield from self._other(batch.record(row), *named, judged=bool(there[row]))
            done = first + int(there[row:cut].sum())
            row = cut
        yield from (self._gone(number, gone) for gone in judged.offsets[done:].tolist())

    def _refused(self, batch: RecordBatch, step: Step) -> Iterator[Outgoing]:
        """Return what to publish of records in a range that has no verdicts."""
        accounted, forgetting = step.named()
        for record in batch:
            if record.offset in accounted:
                yield from self._other(record, accounted, forgetting, judged=False)
            else:
                yield self._reject(record, f"{REFUSED}: {excerpt(step.refused or '', _CHARACTERS)}")

    def _other(
        self,
        record: Record,
        accounted: frozenset[int],
        forgetting: frozenset[int],
        *,
        judged: bool,
    ) -> Iterator[Outgoing]:
        """Return what to publish of a record that isn't a document as it was judged."""
        if record.value is None and corrects(record.headers):
            return  # It is for the index alone.
        if record.value is None or record.offset in forgetting:
            yield from self._pass_on(record)
        elif judged:
            yield self._changed(record)
        elif record.offset not in accounted:
            yield self._not_judged(record)

    def _verdicts(
        self, batch: RecordBatch, sequence: int, found: Mapping[int, list[Found]]
    ) -> Iterator[AnyOutgoing]:
        """Return the documents with their verdicts; their sequence numbers follow each other."""
        place, offsets = batch.place, batch.offsets.tolist()
        prefix = b"%s-%d-" % (place.topic.encode(), place.partition)
        values = list(batch.values)
        rejected: dict[int, str] = {}
        headers: list[list[Header]] = [
            [_UNIQUE, (SEQUENCE, b"%d" % number), (SOURCE, b"%s%d" % (prefix, offset))]
            for number, offset in enumerate(offsets, sequence)
        ]
        duplicate = [False] * len(batch)
        for row in [row for row, offset in enumerate(offsets) if offset in found] if found else ():
            made = self._verdict(batch.record(row), found[offsets[row]])
            if isinstance(made, str):
                rejected[row] = made
            elif made is not None:
                self._room -= len(made.value or b"") - len(values[row] or b"")
                self._room -= headers_size(made.headers)
                values[row] = made.value
                headers[row][0] = made.verdict
                headers[row] += made.headers
                duplicate[row] = made.verdict is _DUPLICATE
        if batch.headers is not None:
            self._room -= sum(map(headers_size, batch.headers))
            both = zip(batch.headers, headers, strict=True)
            headers = [[*without_own(given), *own] for given, own in both]
        stamps = [None if stamp < 0 else stamp for stamp in batch.timestamps.tolist()]
        self._room -= batch.size + _OWN_BYTES * len(batch)
        self._timestamps.append(batch.timestamps)
        unique = [not (other or row in rejected) for row, other in enumerate(duplicate)]
        self._unique_count += unique.count(True)
        self._duplicate_count += duplicate.count(True)
        for topic, mask in ((self._unique, unique), (self._duplicate, duplicate)):
            if any(mask):
                number = place.partition if self._same[topic] else None
                yield OutgoingBatch(
                    topic,
                    number,
                    list(compress(batch.keys, mask)),
                    list(compress(values, mask)),
                    list(compress(headers, mask)),
                    list(compress(stamps, mask)),
                )
        for row, reason in rejected.items():
            yield self._reject(batch.record(row), reason)

    def _verdict(self, record: Record, found: list[Found]) -> _Verdict | str | None:
        """Return what is published of a document with matches; None if it is unique all the same.

        Of a document that can't be published, return why not.
        """
        try:
            made = self._written(record, found)
        except Exception as error:  # noqa: BLE001 -- see worker.stages.guard
            return self._first.poison(record, error)
        if made is None:
            return None
        size = len(made.value or b"") + len(record.key or b"") + _OWN_BYTES
        size += headers_size(record.headers) + headers_size(made.headers)
        most = self._writer.max_record_bytes
        if size > most:
            return f"too-large: {size} bytes with its verdict; the limit of the outputs is {most}"
        if made.verdict is _UNIQUE:
            self._tally.add(table.ALLOWED)
        return made

    def _written(self, record: Record, found: list[Found]) -> _Verdict | None:
        ident = allowance(found)
        if ident is not None:
            return _Verdict(_UNIQUE, record.value, ((ALLOWED_BY, ident),))
        if matches := best(found, self._writer.max_matches):
            value, listed, first = self._writer.write(record, matches)
            return _Verdict(_DUPLICATE, value, ((MATCHES, listed), (FIRST, first)))
        return None

    def _forward(
        self,
        topic: str,
        record: Record,
        value: bytes | None,
        headers: tuple[tuple[str, bytes | None], ...],
    ) -> Outgoing:
        outgoing = Outgoing(
            topic,
            record.partition if self._same[topic] else None,
            record.key,
            value,
            headers,
            record.timestamp if record.timestamp >= 0 else None,
        )
        self._room -= outgoing.size
        return outgoing

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

    def _gone(self, number: int, offset: int) -> Outgoing:
        reason = "payload-gone: the document was deleted from the topic after it was judged"
        return self._reject(Record(self._documents, number, offset, -1, None, None), reason)

    def _not_judged(self, record: Record) -> Outgoing:
        return self._reject(record, NOT_JUDGED)

    def _reject(self, record: Record, reason: str) -> Outgoing:
        self._tally.add(table.DOCUMENTS, 1, "rejected")
        self._tally.add(table.REJECTED, 1, reason.partition(":")[0])
        place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
        if not reason.startswith(REFUSED):  # Its frame was told of; it may have thousands.
            _log.error("%s[%d] offset %d: %s", *place.values(), reason, extra=place)
        return self._forward(
            self._rejected, record, record.value, rejection(record, self.name, reason)
        )

    def committed(self) -> None:
        """Count what was published."""
        metrics, now = self._metrics, self._metrics.clock()
        metrics.add(table.DOCUMENTS, self._unique_count, "unique")
        metrics.add(table.DOCUMENTS, self._duplicate_count, "duplicate")
        stamps = np.concatenate([np.empty(0, np.int64), *self._timestamps])
        seconds = np.maximum(0.0, now - stamps[stamps >= 0] / 1_000)
        metrics.observe(table.LATENCY_SECONDS, seconds)
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
        self._cache.wait_beside(waiting)
        self._metrics.set(table.MEMORY_BYTES, waiting + self._cache.cost, "lanes")
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
        self._cache.publish_from({})
