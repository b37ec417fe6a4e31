"""Fingerprint: turns documents into frames of sketches and keys of exact texts.

Unreadable documents go to *rejected*.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, groupby
from operator import itemgetter

import numpy as np

from lsh import Fingerprinter
from lsh._core import Signed as Signature
from worker.bus import OffsetOutOfRange, Outgoing, PartitionUnreadable, Record, TopicPartition
from worker.formats.base import Document, DocumentFormat, Unreadable
from worker.formats.first_texts import TextWatch
from worker.formats.seen import FieldWatch
from worker.formats.unreadable import NULL_TEXT, Deleted
from worker.stages.base import Burst, StageError, StatelessStage, unread
from worker.stages.deaths import Deaths
from worker.stages.first_cases import FirstCases
from worker.stages.framing import Aside, Framer, Signed, Span, checksum
from worker.stages.reject_limit import RejectGuard, RejectLimit
from worker.stages.turns import BUILDING, SEALED
from worker.topology import Topology
from worker.wire import FRAME_BYTES, SetAside, beyond, encode
from worker.wire.headers import reduced_rejection, rejection

__all__ = ["Fingerprint", "FingerprintEvents"]

_log = logging.getLogger(__name__)


_POISON = "the worker died twice while it read this document"
_PLACE = itemgetter(0, 1)
"""The topic and the partition of a record."""
_UNREAD = "unreadable: an operator set this offset aside, since its batch can't be unpacked"
_AT_ONCE = 5_000
"""Offsets that one transaction sets aside: a small batch may have millions of empty records."""


def _ends(records: Sequence[Record]) -> dict[TopicPartition, int]:
    """Return the offsets after the last record of each partition."""
    last = {(record[0], record[1]): record[2] for record in records}  # by index: a hot path
    return {TopicPartition(*place): offset + 1 for place, offset in last.items()}


@dataclass(slots=True)
class _Part:
    """What was read of a partition in a burst: the documents, and what is set aside.

    ``end`` is the offset after the last record.
    """

    records: list[Record] = field(default_factory=list)
    ids: list[bytes] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    aside: Aside = field(default_factory=Aside.nothing)
    end: int = 0

    def signed(self, signed: Signature, rows: slice) -> Signed:
        """Return the documents that aren't blank; ``rows`` are theirs in ``signed``."""
        columns = Signed(
            np.array([record[2] for record in self.records], np.int64),
            np.array(self.times, np.int64),
            np.array([checksum(record[5] or b"") for record in self.records], np.uint64),
            self.ids,
            signed.sketches[rows],
            signed.texts[rows],
            signed.shingles[rows],
        )
        stays = ~signed.blank[rows]
        if stays.all():
            return columns
        offsets, times, checksums, _, sketches, texts, shingles = columns
        return Signed(
            offsets[stays],
            times[stays],
            checksums[stays],
            list(compress(self.ids, stays.tolist())),
            sketches[stays],
            texts[stays],
            shingles[stays],
        )


class FingerprintEvents:
    """Callbacks for what *fingerprint* has done. By default they do nothing."""

    def rejected(self, code: str, count: int) -> None:
        """Handle ``count`` rejected documents; ``code`` is the reason's code."""

    def unusable(self, count: int) -> None:
        """Handle ``count`` tombstones that forget no document."""


class Fingerprint(StatelessStage):
    """The stateless, CPU-heavy stage.

    For each partition in a burst, it emits frames that cover every offset read. A frame begins
    at the committed offset, so the frames of a partition tile it across any crash.
    """

    name = "fingerprint"

    def __init__(  # noqa: PLR0913 -- the composition root's business
        self,
        topology: Topology,
        *,
        reader: DocumentFormat,
        fingerprinter: Fingerprinter,
        reject_limit: RejectLimit,
        frame_bytes: int = FRAME_BYTES,
        skip_deleted: bool = False,
        deaths: Deaths | None = None,
        watch: FieldWatch | None = None,
        silent: bool = False,
        texts: TextWatch | None = None,
        sealed: bool = False,
        starts: Mapping[TopicPartition, int] | None = None,
        aside: Sequence[SetAside] = (),
        events: FingerprintEvents | None = None,
    ) -> None:
        """Take where to read and write, how to read a document, and how to sign its text.

        ``skip_deleted``: if documents were deleted unread, continue from the log's start.
        ``deaths``: what the worker has died of; by default it notes nothing.
        ``watch``: warns in the log of a field that none of the first documents has.
        ``silent``: the first document of each reason for a rejection is no line in the log.
        ``texts``: warns in the log of first texts that the settings don't suit.
        ``sealed``: seal the partitions instead of reading them.
        ``starts``: where to begin the partitions that have not been begun; see
        `worker.stages.turns`.
        ``aside``: the ranges that are rejected unread.
        """
        self.topics = (topology.documents,)
        self._fingerprints = topology.fingerprints
        self._rejected = topology.rejected
        self._framer = Framer(topology.layout.id, frame_bytes)
        self._reader = reader
        self._fingerprinter = fingerprinter
        self._nothing = Signed.nothing(fingerprinter.parameters.slots)
        self._guard = RejectGuard(reject_limit, reader)
        self._skip_deleted = skip_deleted
        self._watch = watch or FieldWatch(reader, ())
        self._texts = texts
        self._deaths = deaths or Deaths(topology.documents, "", None)
        self._events = events or FingerprintEvents()
        self._sealed = sealed
        self._starts = starts or {}
        self._aside = aside
        self._skipping: dict[TopicPartition, int] = {}
        self._skipped: dict[TopicPartition, int] = {}
        self._skips: dict[TopicPartition, int] = {}
        self._turned: dict[TopicPartition, int] = {}
        self._next: dict[TopicPartition, int] = {}
        self._first = FirstCases(_log, silent=silent)
        self._textless = 0
        """How many records of the burst are no documents: tombstones and deletes."""
        self._unusable = 0
        self._reasons: Counter[str] = Counter()
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
        self._ends = {}
        self._unusable = 0
        self._reasons = Counter()
        self._deaths.passed(offsets)
        self._skipping, self._skips, self._skipped = {}, {}, {}
        self.pending = False
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
        if self._sealed:
            plain = {place: at for place, at in offsets.items() if at < BUILDING}
            self._turned = {place: SEALED + at for place, at in plain.items()}
            return {}
        begun = {place: self._starts[place] for place, at in offsets.items()
                 if at == BUILDING and place in self._starts}  # fmt: skip
        self._turned = dict(begun)
        return {**{place: at for place, at in offsets.items() if at < BUILDING}, **begun}

    def process(
        self,
        records: Sequence[Record],
        room: int = sys.maxsize,  # noqa: ARG002 -- bounded by the records
    ) -> Burst | None:
        """Parse and fingerprint a batch; see `Stage`."""
        self._textless = 0
        self._unusable = 0
        self._reasons = Counter()
        outgoing, self._ends = self._set_aside()
        if not records:
            # Before anything else is committed: only then does the group say where it stands.
            offsets = {**self._turned, **self._ends}
            return Burst(tuple(outgoing), offsets) if offsets else None
        deaths = self._deaths
        ends = _ends(records)
        self._ends |= ends
        if deaths.careful(records):
            for record in records:
                outgoing += self._read_alone(record)
        else:
            deaths.reading(ends)
            outgoing += self._read(records)
        deaths.done()
        self._guard.check(len(records) - self._textless, self._textless)
        return Burst(outgoing, {**self._turned, **self._ends})

    def _skip(self, place: TopicPartition, offset: int) -> bool:
        """Set aside what is to be, if it is where a partition is read; return whether it is."""
        end = beyond(self._aside, place.partition, offset)
        if end is None:
            return False
        self._skipping[place] = end
        self.pending = True
        _log.error(
            "%s[%d]: offsets %d to %d were set aside, since the batch there can't be unpacked. They"
            " are rejected unread",
            *place, offset, end - 1,
            extra={"topic": place.topic, "partition": place.partition, "offset": offset},
        )  # fmt: skip
        return True

    def _set_aside(self) -> tuple[list[Outgoing], dict[TopicPartition, int]]:
        """Return what rejects the next offsets that are set aside, and the offsets after them."""
        outgoing: list[Outgoing] = []
        ends: dict[TopicPartition, int] = {}
        for place, end in list(self._skipping.items()):
            first = self._next[place]
            # There may be markers before the range, which a frame covers, too.
            while beyond(self._aside, place.partition, first) is None:
                first += 1
            ends[place] = until = min(end, first + _AT_ONCE)
            for offset in range(first, until):
                unread_one = Record(place.topic, place.partition, offset, -1, None, None)
                outgoing.append(self._reject(unread_one, _UNREAD))
            self._reasons["unreadable"] += until - first
            outgoing += self._covered(place, until, list(range(first, until)))
            if until == end:
                del self._skipping[place]
                self._skipped[place] = end
        self.pending = bool(self._skipping)
        return outgoing, ends

    def unreadable(self, error: PartitionUnreadable) -> int | None:
        """Set a batch aside that can't be read, if it is to be; see `Stage`."""
        if not self._skip(error.partition, error.position):
            raise unread(error)
        return None

    def started(self) -> Mapping[TopicPartition, int]:
        """Return the partitions of which a range was set aside, from its end on."""
        started, self._skips = self._skips, {}
        return started

    def _read_alone(self, record: Record) -> list[Outgoing]:
        """Read a document that may kill the worker, unless it has done so twice.

        A tombstone is never poison: whoever must forget a document can't set that aside.
        """
        if record.value is None or not self._deaths.poison(record):
            self._deaths.reading_alone(record)
            return self._read([record])
        size = len(record.value or b"")
        _log.error(
            "%s[%d]@%d (%d bytes) is rejected as poison: %s",
            record.topic, record.partition, record.offset, size, _POISON,
        )  # fmt: skip
        self._reasons["poison"] += 1
        partition = TopicPartition(record.topic, record.partition)
        return [
            self._reject(record, f"poison: {_POISON}"),
            *self._covered(partition, record.offset + 1, [record.offset]),
        ]

    def _read(self, records: Sequence[Record]) -> list[Outgoing]:
        """Return the frames and rejections of some documents."""
        outgoing: list[Outgoing] = []
        parts: dict[TopicPartition, _Part] = {}
        for place, run in groupby(records, _PLACE):
            part = parts.setdefault(TopicPartition(*place), _Part())
            outgoing += self._parted(list(run), part)
        texts = [text for part in parts.values() for text in part.texts]
        self._look_at(records[0].topic, texts)
        signed = self._fingerprinter.sign(texts)
        first = 0
        for partition, part in parts.items():
            rows = slice(first, first + len(part.texts))
            first = rows.stop
            blank = signed.blank[rows]
            for at in np.flatnonzero(blank).tolist():
                record = part.records[at]
                self._reasons["empty-text"] += 1
                reason = "empty-text: nothing is left of the text once it is normalised"
                outgoing.append(self._reject(record, reason))
                part.aside.offsets.append(record.offset)
            part.aside.offsets.sort()
            span = Span(partition.partition, self._next[partition], part.end)
            outgoing += self._framed(span, part.signed(signed, rows), part.aside)
            self._next[partition] = span.end
        return outgoing

    def _parted(self, run: Sequence[Record], part: _Part) -> list[Outgoing]:
        """Read records of one partition into its part; return the rejections."""
        outgoing: list[Outgoing] = []
        part.end = run[-1].offset + 1
        read = self._reader.read_all(run)
        texts = [text for text in read.texts if text is not None]
        if len(texts) == len(run) and not self._watch.active:
            part.records += run
            part.ids += read.ids
            part.times += read.times
            part.texts += texts
            return outgoing
        for record, ident, text, time in zip(run, *read, strict=True):
            if text is None:
                document = self._read_slowly(record, part.aside, outgoing)
            else:
                document = Document(ident, text, time)
            if document is not None:
                part.records.append(record)
                part.ids.append(document.id)
                part.times.append(document.time)
                part.texts.append(document.text)
                self._look(record, record.value or b"")
        return outgoing

    def _read_slowly(
        self, record: Record, aside: Aside, outgoing: list[Outgoing]
    ) -> Document | None:
        """Return a document; None if the record has none, which is set aside or rejected."""
        ident = None
        try:
            if record.value is not None:
                return self._reader.read(record)
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

    def _look(self, record: Record, value: bytes) -> None:
        """Warn of a field that the first documents lack, if this is the last of them."""
        if warning := self._watch.add(value):
            _log.warning("%s: %s", record.topic, warning)

    def _forgotten(self, record: Record) -> bytes | None:
        """Return the id that a tombstone forgets; None if it can't be told."""
        self._textless += 1
        try:
            return self._reader.forgotten(record)
        except Unreadable as error:
            said = f"a tombstone forgets no document: {error}. It is passed on"
            self._first.tell("tombstone", record, said)
            self._unusable += 1
            return None

    def _deleted(self, record: Record, deletion: Deleted) -> bytes:
        """Return the id that a delete with a value forgets."""
        self._textless += 1
        self._look(record, record.value or b"")
        said = f"{deletion.detail}, so it forgets document {deletion.id.decode()!r}"
        self._first.tell("delete", record, said, logging.INFO)
        return deletion.id

    def _note_rejected(self, record: Record, error: Unreadable) -> None:
        """Count a document that can't be read; log the first for each reason."""
        value = record.value or b""
        said = f"rejected: {error}"
        self._reasons[error.code] += 1
        if error.code == NULL_TEXT:
            said += "; for the deletes of a change feed see documents.deletes"
            self._textless += 1
            self._look(record, value)
        self._guard.rejected(error, value)
        self._first.tell(error.code, record, said)

    def settle(self, positions: Mapping[TopicPartition, int]) -> Burst | None:
        """Cover ranges without documents by empty frames, so that frames still tile."""
        read = {place: end for place, end in positions.items() if place in self._next}
        outgoing: list[Outgoing] = []
        for partition, end in read.items():
            outgoing += self._covered(partition, end, [])
        return Burst(outgoing, read) if read else None

    def _covered(self, partition: TopicPartition, end: int, accounted: list[int]) -> list[Outgoing]:
        """Return frames up to an offset, without documents."""
        span = Span(partition.partition, self._next[partition], end)
        self._next[partition] = end
        return self._framed(span, self._nothing, Aside(accounted, []))

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
        """Release the notes."""
        self._deaths.close()

    def reduced(self, record: Outgoing) -> Outgoing | None:
        """Return a smaller version of a rejected record; its headers say where the rest is."""
        return reduced_rejection(record) if record.topic == self._rejected else None

    def committed(self) -> None:
        """Count what was rejected, and forget deaths that lie behind."""
        self._deaths.passed(self._ends)
        self._turned = {}
        self._skips |= self._skipped
        self._skipped = {}
        for code, count in self._reasons.items():
            self._events.rejected(code, count)
        self._events.unusable(self._unusable)
        self._unusable = 0
        self._reasons = Counter()
        self._ends = {}

    def out_of_range(self, error: OffsetOutOfRange) -> int:
        """Return the log's start if the settings allow skipping deleted documents.

        Raises:
            StageError: they don't, or the position is past the log's end.
        """
        if self._skip_deleted and error.position < error.low:
            said = "%s: documents were deleted before they were read, and are skipped"
            _log.error(said, error, extra=error.partition._asdict())
            return error.low
        msg = (
            f"{error}: the documents between were deleted before they were read, or the topic was"
            " recreated. See the runbook, 'Documents that were deleted unread'"
        )
        raise StageError(msg)
