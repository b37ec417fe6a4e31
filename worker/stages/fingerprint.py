"""Fingerprint: turns documents into frames of sketches and keys of exact texts.

Unreadable documents go to *rejected*.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress

import numpy as np

from lsh import Fingerprinter
from lsh._core import Signed as Signature
from worker.bus import (
    Offset,
    Outgoing,
    PartitionUnreadable,
    Record,
    RecordBatch,
    TopicPartition,
    state_of,
)
from worker.bus.deadly_documents import DeadlyDocuments
from worker.corrections.request import CorrectionError, decoded, in_frame
from worker.formats.base import Document, DocumentFormat
from worker.formats.first_documents import FieldWatch, TextWatch
from worker.formats.unreadable import NULL_TEXT, Deleted, Unreadable
from worker.generations.turns import SEALED, WAITING
from worker.metrics import table
from worker.metrics.metrics import Metrics, Tally
from worker.stages.base import NOTHING, Burst, unread
from worker.stages.document_cache import DocumentCache
from worker.stages.framing import (
    Aside,
    Framer,
    Signed,
    Span,
    checksums,
    signed_correction,
)
from worker.stages.guard import FirstCases, Guard
from worker.stages.reject_limit import RejectGuard, RejectLimit
from worker.topology import Topology
from worker.wire.codec import encode
from worker.wire.frame import FRAME_BYTES, SetAside, beyond
from worker.wire.headers import CORRECTION, corrects, rejection

_log = logging.getLogger(__name__)


_POISON = "the worker died twice while it read this document"
_UNREAD = "unreadable: an operator set this offset aside, since its batch can't be unpacked"
_AT_ONCE = 5_000
"""Offsets that one transaction sets aside: a small batch may have millions of empty records."""


@dataclass(slots=True)
class _Read:
    """The documents of a batch, and the records that are set aside.

    ``rows`` are those of the documents in the batch; None if all of them are documents.
    """

    batch: RecordBatch
    rows: list[int] | None
    ids: list[bytes]
    times: list[int]
    texts: list[str]
    aside: Aside = field(default_factory=Aside.nothing)

    def row(self, number: int) -> int:
        """Return the row in the batch of one of the documents."""
        return number if self.rows is None else self.rows[number]

    def signed(self, signed: Signature, within: slice) -> Signed:
        """Return the documents that aren't blank; ``within`` are theirs in ``signed``."""
        stays = ~signed.blank[within]
        rows, values, ids, offsets = self.rows, self.batch.values, self.ids, self.batch.offsets
        if rows is not None:
            values, offsets = [values[row] for row in rows], offsets[rows]
        if not stays.all():
            kept = stays.tolist()
            values, ids = list(compress(values, kept)), list(compress(ids, kept))
        return Signed(
            offsets[stays],
            np.array(self.times, np.int64)[stays],
            checksums(values),
            ids,
            signed.sketches[within][stays],
            signed.texts[within][stays],
            signed.shingles[within][stays],
        )


class Fingerprint:
    """The stateless, CPU-heavy stage.

    For each partition in a burst, it emits frames that cover every offset read. A frame begins
    at the committed offset, so the frames of a partition tile it across any crash.
    """

    name = "fingerprint"
    shards = None

    def __init__(  # noqa: PLR0913 -- the composition root's business
        self,
        topology: Topology,
        *,
        reader: DocumentFormat,
        fingerprinter: Fingerprinter,
        reject_limit: RejectLimit,
        frame_bytes: int = FRAME_BYTES,
        skip_deleted: bool = False,
        deaths: DeadlyDocuments | None = None,
        watch: FieldWatch | None = None,
        silent: bool = False,
        texts: TextWatch | None = None,
        sealed: bool = False,
        starts: Mapping[TopicPartition, int] | None = None,
        aside: Sequence[SetAside] = (),
        cache: DocumentCache | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """Take where to read and write, how to read a document, and how to sign its text.

        ``skip_deleted``: if documents were deleted unread, continue from the log's start.
        ``deaths``: what the worker has died of; by default it notes nothing.
        ``watch``: warns in the log of a field that none of the first documents has.
        ``silent``: the first document of each reason for a rejection is no line in the log.
        ``texts``: warns in the log of first texts that the settings don't suit.
        ``sealed``: seal the partitions instead of reading them.
        ``starts``: where to begin the partitions that have not been begun; see
        `worker.generations.turns`.
        ``aside``: the ranges that are rejected unread.
        ``cache``: keeps documents for *route* of the same worker.
        """
        self._fingerprints = topology.fingerprints
        self._rejected = topology.rejected
        self._framer = Framer(topology.layout.id, frame_bytes)
        self._reader = reader
        self._fingerprinter = fingerprinter
        self._nothing = Signed.nothing(fingerprinter.parameters.slots)
        self._rejects = RejectGuard(reject_limit, reader)
        self._skip_deleted = skip_deleted
        self._watch = watch or FieldWatch(reader, ())
        self._texts = texts
        self._deaths = deaths or DeadlyDocuments(topology.documents)
        reader.waiting = self._deaths.waiting
        self._metrics = metrics or Metrics()
        self._tally = Tally()
        self._sealed = sealed
        self._starts = starts or {}
        self._aside = aside
        self._cache = cache or DocumentCache(0)
        self._skipping: dict[TopicPartition, int] = {}
        self._turned: dict[TopicPartition, int] = {}
        self._next: dict[TopicPartition, int] = {}
        self._first = FirstCases(_log, silent=silent)
        self._guard = Guard(self._deaths, self._read_together, self._failed, self._deadly)
        self._textless = 0
        """How many records of the burst are no documents: tombstones and deletes."""
        self._ends: dict[TopicPartition, int] = {}

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Continue from the committed offsets.

        The next frame still covers the offsets that are skipped, so frames tile. Partitions that
        are sealed, or not begun, are not read.
        """
        self._turned = {}
        self._next = offsets = self._in_turn(offsets)
        self._cache.read_from({place.partition: at for place, at in offsets.items()})
        self._ends = {}
        self._tally.clear()
        self._deaths.passed(offsets)
        self._skipping = {}
        for place, at in offsets.items():
            self._skip(place, at)
        offsets = {place: at for place, at in offsets.items() if place not in self._skipping}
        if not self._skip_deleted:
            return dict(offsets)
        starts = {place: max(at, watermarks(place)[0]) for place, at in offsets.items()}
        for place, start in starts.items():
            if start > offsets[place]:
                _log.error(
                    "%s[%d]: offsets %d to %d were deleted before they were read, and are skipped",
                    *place, offsets[place], start - 1,
                    extra=place._asdict(),
                )  # fmt: skip
        return starts

    def _in_turn(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return where to read on; note what is to be committed before that."""
        plain = {place: at for place, at in offsets.items() if state_of(at) is None}
        if self._sealed:
            self._turned = {place: Offset(at, SEALED) for place, at in plain.items()}
            return {}
        begun = {place: self._starts[place] for place, at in offsets.items()
                 if state_of(at) == WAITING and place in self._starts}  # fmt: skip
        self._turned = dict(begun)
        return plain | begun

    def process(
        self,
        batches: Sequence[RecordBatch],
        room: int = sys.maxsize,  # noqa: ARG002 -- bounded by the records
        quiet: Mapping[TopicPartition, int] = NOTHING,
    ) -> Burst:
        """Parse and fingerprint a batch; see `Stage`.

        Ranges without documents are covered by empty frames, so that frames still tile.
        """
        self._textless = 0
        self._tally.clear()
        outgoing, starts = self._set_aside()
        if batches:
            outgoing += self._taken(batches)
        for place, end in quiet.items():
            if self._next.get(place, end) < end:
                outgoing += self._covered(place, end, [])
                self._ends[place] = end
        # Before anything else is committed: only then does the group say where it stands.
        offsets = {**self._turned, **self._ends}
        return Burst(outgoing, offsets, more=bool(self._skipping), starts=starts)

    def _taken(self, batches: Sequence[RecordBatch]) -> list[Outgoing]:
        """Return the frames and rejections of batches, unless too many are rejected."""
        self._ends |= {batch.place: batch.end for batch in batches}
        outgoing = list(chain.from_iterable(self._guard.done(batches, batches)))
        documents = sum(map(len, batches)) - self._textless
        self._rejects.check(documents, self._textless)
        return outgoing

    def _skip(self, place: TopicPartition, offset: int) -> bool:
        """Set aside what is to be, if it is where a partition is read; return whether it is."""
        end = beyond(self._aside, place.partition, offset)
        if end is None:
            return False
        self._skipping[place] = end
        _log.error(
            "%s[%d]: offsets %d to %d were set aside, since the batch there can't be unpacked. They"
            " are rejected unread",
            *place, offset, end - 1,
            extra={"topic": place.topic, "partition": place.partition, "offset": offset},
        )  # fmt: skip
        return True

    def _set_aside(self) -> tuple[list[Outgoing], dict[TopicPartition, int]]:
        """Return what rejects the next offsets that are set aside.

        Also returns where to read on in partitions of which all of a range is rejected.
        """
        self._ends = {}
        outgoing: list[Outgoing] = []
        starts: dict[TopicPartition, int] = {}
        for place, end in list(self._skipping.items()):
            first = self._next[place]
            # There may be markers before the range, which a frame covers, too.
            while beyond(self._aside, place.partition, first) is None:
                first += 1
            self._ends[place] = until = min(end, first + _AT_ONCE)
            for offset in range(first, until):
                unread_one = Record(place.topic, place.partition, offset, -1, None, None)
                outgoing.append(self._reject(unread_one, _UNREAD))
            self._count_rejected("unreadable", until - first)
            outgoing += self._covered(place, until, list(range(first, until)))
            if until == end:
                del self._skipping[place]
                starts[place] = end
        return outgoing, starts

    def unreadable(self, error: PartitionUnreadable) -> int | None:
        """Set a batch aside that can't be read, if it is to be; see `Stage`."""
        if not self._skip(error.partition, error.position):
            raise unread(error)
        return None

    def _deadly(self, batch: RecordBatch) -> list[Outgoing]:
        """Reject a record that has killed the worker twice."""
        record = batch.record(0)
        _log.error(
            "%s[%d]@%d (%d bytes) is rejected as poison: %s",
            record.topic, record.partition, record.offset, len(record.value or b""), _POISON,
        )  # fmt: skip
        return self._poison(record, f"poison: {_POISON}")

    def _failed(self, batch: RecordBatch, error: Exception) -> list[Outgoing]:
        """Reject a record whose reading raises an error that nobody has foreseen."""
        record = batch.record(0)
        return self._poison(record, self._first.poison(record, error))

    def _poison(self, record: Record, reason: str) -> list[Outgoing]:
        """Reject a record unread, whatever it is; a tombstone of these forgets nothing."""
        if record.value is None:
            _log.error(
                "%s[%d]@%d has no value: if it is a tombstone, the index does NOT forget its"
                " document. Once the cause is mended, send it again (`neardup forget`)",
                record.topic, record.partition, record.offset,
                extra={
                    "topic": record.topic, "partition": record.partition, "offset": record.offset
                },
            )  # fmt: skip
        self._count_rejected("poison")
        (batch,) = RecordBatch.of([record])
        return [
            self._reject(record, reason),
            *self._covered(batch.place, batch.end, [record.offset], batch),
        ]

    def _read_together(self, batches: Sequence[RecordBatch]) -> list[Outgoing]:
        """Return the frames and rejections of some documents; count nothing if that fails."""
        textless, tally, rejects = self._textless, self._tally.copy(), self._rejects.burst
        try:
            outgoing, following = self._made(batches)
        except Exception:
            self._textless, self._tally, self._rejects.burst = textless, tally, rejects
            raise
        self._next |= following
        for batch in batches:
            self._cache.read(batch.place.partition, batch.end, batch)
        return outgoing

    def _made(
        self, batches: Sequence[RecordBatch]
    ) -> tuple[list[Outgoing], dict[TopicPartition, int]]:
        """Return the frames and rejections, and where the next frames begin."""
        outgoing: list[Outgoing] = []
        following: dict[TopicPartition, int] = {}
        self._reader.prepare(batches)
        parts = [self._parted(batch, outgoing) for batch in batches]
        texts = [text for part in parts for text in part.texts]
        self._look_at(batches[0].place.topic, texts)
        signed = self._fingerprinter.sign(texts)
        first = 0
        for part in parts:
            within = slice(first, first + len(part.texts))
            first = within.stop
            for number in np.flatnonzero(signed.blank[within]).tolist():
                record = part.batch.record(part.row(number))
                self._count_rejected("empty-text")
                reason = "empty-text: nothing is left of the text once it is normalised"
                outgoing.append(self._reject(record, reason))
                part.aside.offsets.append(record.offset)
            part.aside.offsets.sort()
            place = part.batch.place
            start = following.get(place, self._next[place])
            span = Span(place.partition, start, part.batch.end)
            outgoing += self._framed(span, part.signed(signed, within), part.aside)
            following[place] = span.end
        return outgoing, following

    def _parted(self, batch: RecordBatch, outgoing: list[Outgoing]) -> _Read:
        """Read a batch; add its rejections to ``outgoing``."""
        read = self._reader.read_all(batch)
        texts = [text for text in read.texts if text is not None]
        if len(texts) == len(batch) and not self._watch.active:
            return _Read(batch, None, read.ids, read.times, texts)
        rows: list[int] = []
        part = _Read(batch, rows, [], [], [])
        for row, (ident, text, time) in enumerate(zip(*read, strict=True)):
            if text is None:
                document = self._read_slowly(batch.record(row), part.aside, outgoing)
            else:
                document = Document(ident, text, time)
            if document is not None:
                rows.append(row)
                part.ids.append(document.id)
                part.times.append(document.time)
                part.texts.append(document.text)
                if self._watch.active:
                    self._look(batch.record(row))
        return part

    def _read_slowly(
        self, record: Record, aside: Aside, outgoing: list[Outgoing]
    ) -> Document | None:
        """Return a document; None if the record has none, which is set aside or rejected."""
        ident = None
        try:
            if record.value is not None:
                return self._reader.read(record)
            if self._corrected(record, aside):
                ident = self._forgotten(record)
        except Deleted as deletion:
            ident = self._deleted(record, deletion)
        except Unreadable as error:
            self._note_rejected(record, error)
            outgoing.append(self._reject(record, str(error)))
        aside.offsets.append(record.offset)
        if ident is not None:
            aside.tombstones.append((record.offset, ident))
        return None

    def _corrected(self, record: Record, aside: Aside) -> bool:
        """Add what a record without a value corrects; return whether it forgets a document.

        Raises:
            Unreadable: it corrects nothing.
        """
        named = [value for name, value in record.headers if name == CORRECTION]
        if not named:
            return True
        forgets = not corrects(record.headers)
        self._textless += not forgets
        try:
            request = decoded(named[-1], self._reader.most_id_bytes)
            made = in_frame(request, record.offset, record.timestamp)
            aside.corrections.append(signed_correction(made, self._fingerprinter))
        except CorrectionError as error:
            if not forgets:
                raise Unreadable("bad-correction", str(error)) from None
            said = f"the note on a tombstone can't be read: {error}. Its document is forgotten"
            self._first.tell("note", record, said)
        return forgets

    def _look(self, record: Record) -> None:
        """Warn of a field that the first documents lack, if this is the last of them."""
        if warning := self._watch.add(self._reader.whole(record).value or b""):
            _log.warning("%s: %s", record.topic, warning)

    def _forgotten(self, record: Record) -> bytes | None:
        """Return the id that a tombstone forgets; None if it can't be told."""
        self._textless += 1
        try:
            return self._reader.forgotten(record)
        except Unreadable as error:
            said = f"a tombstone forgets no document: {error}. It is passed on"
            self._first.tell("tombstone", record, said)
            self._tally.add(table.TOMBSTONES_UNUSABLE)
            return None

    def _deleted(self, record: Record, deletion: Deleted) -> bytes:
        """Return the id that a delete with a value forgets."""
        self._textless += 1
        self._look(record)
        said = f"{deletion.detail}, so it forgets document {deletion.id.decode()!r}"
        self._first.tell("delete", record, said, logging.INFO)
        return deletion.id

    def _note_rejected(self, record: Record, error: Unreadable) -> None:
        """Count a document that can't be read; log the first for each reason."""
        said = f"rejected: {error}"
        self._count_rejected(error.code)
        if error.code == NULL_TEXT:
            said += "; for the deletes of a change feed see documents.deletes"
            self._textless += 1
            self._look(record)
        self._rejects.rejected(error, record.value or b"")
        self._first.tell(error.code, record, said)

    def _count_rejected(self, code: str, count: int = 1) -> None:
        self._tally.add(table.DOCUMENTS, count, "rejected")
        self._tally.add(table.REJECTED, count, code)

    def _covered(
        self,
        partition: TopicPartition,
        end: int,
        accounted: list[int],
        batch: RecordBatch | None = None,
    ) -> list[Outgoing]:
        """Return frames up to an offset, without documents; ``batch`` are the records there."""
        span = Span(partition.partition, self._next[partition], end)
        self._next[partition] = end
        self._cache.read(partition.partition, end, batch)
        return self._framed(span, self._nothing, Aside(accounted, [], []))

    def _framed(self, span: Span, signed: Signed, aside: Aside) -> list[Outgoing]:
        """Return the frames of a range as records."""
        return [
            Outgoing(self._fingerprints, 0, None, encode(frame))
            for frame in self._framer.frames(span, signed, aside)
        ]

    def _look_at(self, topic: str, texts: Sequence[str]) -> None:
        """Warn in the log if the first texts are such as the settings don't suit."""
        if self._texts is None or self._texts.done:
            return
        for text in texts:
            for warning in self._texts.add(text):
                _log.warning("%s: %s", topic, warning)

    def _reject(self, record: Record, reason: str) -> Outgoing:
        return Outgoing(
            self._rejected,
            None,
            record.key,
            record.value,
            rejection(record, self.name, reason),
            record.timestamp if record.timestamp >= 0 else None,
        )

    def close(self) -> None:
        """Keep no more documents for *route*."""
        self._cache.read_from({})

    def committed(self) -> None:
        """Count what was rejected, and forget deaths that lie behind."""
        self._deaths.passed(self._ends)
        self._turned = {}
        self._tally.commit(self._metrics)
        self._ends = {}
