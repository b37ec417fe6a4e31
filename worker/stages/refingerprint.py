"""Refingerprint: makes the fingerprints of an earlier log anew, from the documents' payloads."""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from lsh import Fingerprinter
from worker.bus import LogReader, Outgoing, PartitionUnreadable, Record, RecordBatch, TopicPartition
from worker.bus.deadly_documents import DeadlyDocuments
from worker.formats.base import DocumentFormat
from worker.metrics import table
from worker.metrics.metrics import Metrics, Tally
from worker.stages.base import NOTHING, Burst
from worker.stages.framing import Framer
from worker.stages.order import Coverage, follow, placed
from worker.stages.payloads import Payloads
from worker.stages.replacement import FoundPayloads, Replacement, Signer
from worker.topology import Topology
from worker.wire.codec import NO_FRAME, HandOver, encode, hand_over
from worker.wire.fingerprints import document_bytes
from worker.wire.frame import FRAME_BYTES, SetAside

_log = logging.getLogger(__name__)

_PAUSED_AT = 1 / 2
"""A share of the buffer: frames that wait and take more than that pause the log."""
_RESUMED_AT = 1 / 8
"""A share. Pausing discards what was prefetched, so the band is wide."""


@dataclass(slots=True)
class _Waiting:
    """A record of the earlier log, until what follows from it is written.

    ``after`` is the offset after it, and ``cost`` what it takes in bytes. It has a replacement if
    it is a frame. With ``last`` it is the hand-over that ends the earlier log.
    """

    after: int
    cost: int = 0
    replacement: Replacement | None = None
    last: bool = False

    @property
    def wanted(self) -> int | None:
        """Return the offset of the first payload that it lacks; None if it lacks none."""
        return None if self.replacement is None else self.replacement.wanted


class Refingerprint:
    """The stage that builds the log of a generation whose fingerprints are made differently.

    For each frame of the earlier log it writes frames of the same span to the new one, in the same
    order, with the offset in one transaction. It has no other state. Until the hand-over to the
    generation nobody answers from the new log, so what can't be fingerprinted is only set aside.
    The hand-over is the last record that it writes.
    """

    name = "refingerprint"
    shards = None

    def __init__(  # noqa: PLR0913 -- the composition root's business
        self,
        source: Topology,
        target: Topology,
        *,
        documents: Callable[[], LogReader],
        reader: DocumentFormat,
        fingerprinter: Fingerprinter,
        future_allowance_ms: int,
        frame_bytes: int = FRAME_BYTES,
        buffer_bytes: int = 16 << 20,
        deaths: DeadlyDocuments | None = None,
        aside: Sequence[SetAside] = (),
        metrics: Metrics | None = None,
    ) -> None:
        """Take the earlier log and the new one, and how to read a document and to sign its text.

        ``documents`` connects a reader of the documents. A document's time is at most that of its
        frame in the earlier log and ``future_allowance_ms``. What is read ahead takes at most about
        ``buffer_bytes``, and what waits for it half of that and one poll. ``deaths``: what the
        worker has died of while it made fingerprints anew; by default it notes nothing.
        ``aside``: the ranges of documents that are not read.
        """
        self._place = source.order
        self._documents = source.documents
        self._source = source.layout
        self._order = target.fingerprints
        self._target = target.layout.id
        self._generation = target.generation
        deaths = deaths or DeadlyDocuments(source.documents)
        self._signer = Signer(reader, fingerprinter, deaths)
        self._slots = fingerprinter.parameters.slots
        self._document_bytes = document_bytes(target.layout.parameters.slots)
        self._allowance = future_allowance_ms
        self._framer = Framer(self._target, frame_bytes)
        self._buffer_bytes = buffer_bytes
        self._payloads = Payloads(self._documents, documents, buffer_bytes, aside)
        self._metrics = metrics or Metrics()
        self._tally = Tally()
        self._waiting: deque[_Waiting] = deque()
        self._cost = 0
        self._held: frozenset[TopicPartition] = frozenset()
        self._coverage = Coverage()
        self._ended = False
        self._told: set[int] = set()
        self._passed: dict[TopicPartition, int] = {}

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Continue from the committed offset, or from the log's start if that is above it.

        All documents that were deleted from the log are older than the index remembers.
        """
        self._waiting.clear()
        self._cost = 0
        self._held = frozenset()
        self._coverage = Coverage()
        self._ended = False
        self._tally.clear()
        self._passed = {}
        self._payloads.forget()
        starts = {place: max(at, watermarks(place)[0]) for place, at in offsets.items()}
        for place, start in starts.items():
            if start > offsets[place]:
                _log.warning(
                    "%s[%d] now begins at offset %d; this group had read up to %d. If frames were"
                    " deleted between, the new shards refuse the log: then abort the reindex",
                    *place, start, offsets[place],
                    extra=place._asdict(),
                )  # fmt: skip
        return starts

    def process(
        self,
        batches: Sequence[RecordBatch],
        room: int = sys.maxsize,
        quiet: Mapping[TopicPartition, int] = NOTHING,
    ) -> Burst:
        """Take frames, sign payloads that are here, and return what is complete; see `Stage`."""
        for record in chain.from_iterable(batches):
            self._take(record)
        found = self._found()
        if wanted := self._wanted():
            wait = not found and self._waiting[0].wanted is not None
            self._payloads.read(wanted, wait=wait)
            found += self._found()
        if found:
            self._signer.sign(found)
        return self._complete(room, quiet)

    def _take(self, record: Record) -> None:
        """Keep a record of the log until what follows from it is written."""
        if self._ended or (self._waiting and self._waiting[-1].last):
            return
        after = record.offset + 1
        generation = hand_over(record.value, self._source.id)
        if generation is not None:
            if generation == NO_FRAME:
                self._tally.add(table.FRAMES_REFUSED, 1, self.name)
            self._waiting.append(_Waiting(after, last=generation == self._generation))
            return
        frame = placed(record, self._source, self._allowance)
        follow(self._coverage, frame, self.name)
        if frame.refused is not None:
            self._tally.add(table.FRAMES_REFUSED, 1, self.name)
            _log.error(
                "the frame at offset %d of the fingerprints is refused: %s. The new index won't"
                " have its documents",
                frame.offset, frame.refused,
            )  # fmt: skip
        cost = len(record.value or b"") + frame.count * self._document_bytes
        self._waiting.append(_Waiting(after, cost, Replacement(frame)))
        self._cost += cost

    def _wanted(self) -> dict[int, int]:
        """Return the offset of the first payload that each partition lacks."""
        wanted: dict[int, int] = {}
        for one in self._waiting:
            if one.replacement is not None and one.wanted is not None:
                wanted.setdefault(one.replacement.partition, one.wanted)
        return wanted

    def _found(self) -> list[FoundPayloads]:
        """Return the payloads that are here, by frame; those that are gone are set aside."""
        found = []
        reached = {partition: self._payloads.reached(partition) for partition in self._wanted()}
        for one in self._waiting:
            frame = one.replacement
            if frame is None or frame.wanted is None:
                continue
            records = self._payloads.take(frame.partition, frame.end)
            here, gone = frame.find(records, reached[frame.partition])
            if gone:
                self._gone(frame.partition, gone)
            if here:
                found.append(FoundPayloads(frame, here))
        return found

    def _gone(self, partition: int, offsets: Sequence[int]) -> None:
        """Log the first document of a partition that is gone."""
        if partition not in self._told:
            self._told.add(partition)
            _log.warning(
                "%s[%d] offset %d: this document was deleted, so the new index won't have it. Later"
                " ones of the partition are not named",
                self._documents, partition, offsets[0],
                extra={"topic": self._documents, "partition": partition, "offset": offsets[0]},
            )  # fmt: skip

    def _complete(self, room: int, quiet: Mapping[TopicPartition, int]) -> Burst:
        """Return what is complete from the first record that waits on, as far as there is room."""
        outgoing: list[Outgoing] = []
        offsets: dict[TopicPartition, int] = {}
        size = 0
        while size < room and self._waiting and self._waiting[0].wanted is None:
            one = self._waiting.popleft()
            self._cost -= one.cost
            offsets[self._place] = one.after
            made = [Outgoing(self._order, 0, None, value) for value in self._values(one)]
            size += sum(record.size for record in made)
            outgoing += made
        if not self._waiting and not self._ended:
            offsets |= quiet
        return Burst(outgoing, offsets, size, more=bool(self._waiting), held=self._full())

    def _values(self, one: _Waiting) -> list[bytes]:
        """Return what to write to the new log for a record of the earlier one."""
        frame = one.replacement
        if frame is not None:
            self._tally.add(table.REWRITING_DOCUMENTS, frame.signed, "signed")
            for why, count in frame.left_out.items():
                self._tally.add(table.REWRITING_DOCUMENTS, count, why)
            self._passed[TopicPartition(self._documents, frame.partition)] = frame.end
            corrections = self._signer.corrections(frame)
            return [encode(made) for made in frame.frames(self._framer, self._slots, corrections)]
        if one.last:
            self._ended = True
            return [HandOver(self._target, self._generation).encode()]
        return []

    def committed(self) -> None:
        """Count what was written, and forget deaths that lie behind."""
        self._signer.deaths.passed(self._passed)
        self._passed = {}
        self._tally.commit(self._metrics)

    def _full(self) -> frozenset[TopicPartition]:
        """Return the log if enough of it waits, or all of it is done."""
        share = _RESUMED_AT if self._held else _PAUSED_AT
        held = self._ended or self._cost > self._buffer_bytes * share
        self._held = frozenset({self._place} if held else ())
        return self._held

    def unreadable(self, error: PartitionUnreadable) -> int | None:
        """Raise it: all frames are needed."""
        raise error

    def close(self) -> None:
        """Close the reader of the documents."""
        self._waiting.clear()
        self._payloads.close()
