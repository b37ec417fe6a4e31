"""The new fingerprints of a frame's documents: how they are made, until they are complete."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from lsh import Fingerprinter
from lsh._core import Signed as Signature
from worker.bus import BusError, Record, RecordBatch
from worker.bus.deadly_documents import DeadlyDocuments
from worker.corrections.request import CorrectionError
from worker.formats.base import DocumentFormat
from worker.formats.unreadable import Unreadable
from worker.stages.base import StageError
from worker.stages.framing import (
    Aside,
    Framer,
    Signed,
    Span,
    checksum,
    signed_correction,
)
from worker.stages.guard import FirstCases, guarded
from worker.stages.order import Placed
from worker.wire.corrections import Correction
from worker.wire.fingerprints import FingerprintFrame

_log = logging.getLogger(__name__)

LeftOut = Literal["gone", "unreadable", "blank", "poison"]
"""Why a document has no new fingerprint: its payload is deleted or can't be read, nothing is left
of its text, or the worker died of it."""


class Found(NamedTuple):
    """A payload, the row of its document in the frame, and the checksum that it had."""

    row: int
    checksum: int
    record: Record


class Replacement:
    """A frame, and what its documents' new fingerprints are so far.

    Payloads are given up as soon as they are signed, so they take memory for one batch only.

    Attributes:
        left_out: how many documents have no new fingerprint, by the reason.
    """

    def __init__(self, source: Placed) -> None:
        """Take the frame, with the times that its documents have in the order."""
        self._source = source
        frame = source.frame
        self.partition = frame.partition
        self.end = frame.end
        self.left_out: Counter[LeftOut] = Counter()
        self._offsets: list[int] = (frame.offsets.astype(np.int64) + frame.start).tolist()
        self._checksums: list[int] = frame.checksums.tolist()
        self._at = 0
        self._rows: list[int] = []
        self._parts: list[_Part] = []
        self._set_aside: list[int] = []

    @property
    def signed(self) -> int:
        """Return how many documents have new fingerprints."""
        return len(self._rows)

    @property
    def wanted(self) -> int | None:
        """Return the offset of the first payload that is not found yet; None if all are."""
        return self._offsets[self._at] if self._at < len(self._offsets) else None

    def find(self, records: Sequence[Record], reached: int) -> tuple[list[Found], list[int]]:
        """Return the payloads that are the frame's, and the offsets of those that are gone.

        ``records`` follow on the last ones. A payload before ``reached`` that never came is gone.
        Its document is set aside.
        """
        offsets, at, end = self._offsets, self._at, len(self._offsets)
        found: list[Found] = []
        gone: list[int] = []
        for record in records:
            while at < end and offsets[at] < record.offset:
                gone.append(offsets[at])
                at += 1
            if at < end and offsets[at] == record.offset:
                found.append(Found(at, self._checksums[at], record))
                at += 1
        while at < end and offsets[at] < reached:
            gone.append(offsets[at])
            at += 1
        self._at = at
        self._set_aside += gone
        self.left_out["gone"] += len(gone)
        return found, gone

    def set_aside(self, row: int, why: LeftOut) -> None:
        """Leave out a document that has no fingerprint."""
        self._set_aside.append(self._offsets[row])
        self.left_out[why] += 1

    def sign(self, rows: Sequence[int], signed: Signature, first: int) -> None:
        """Take what was signed of some documents, and set aside those that are blank.

        ``rows`` are those of the documents in the frame, and ``first`` is that of the first of them
        in ``signed``, where the others follow.
        """
        own = slice(first, first + len(rows))
        blank = signed.blank[own]
        judged = first + np.flatnonzero(~blank)
        self._parts.append(
            _Part(signed.sketches[judged], signed.texts[judged], signed.shingles[judged])
        )
        for row, empty in zip(rows, blank.tolist(), strict=True):
            if empty:
                self.set_aside(row, "blank")
            else:
                self._rows.append(row)

    @property
    def corrections(self) -> list[Correction]:
        """Return what people correct in the frame, with offsets in the log of the documents."""
        frame = self._source.frame
        return [replace(one, offset=frame.start + one.offset) for one in frame.corrections]

    def frames(
        self, framer: Framer, slots: int, corrections: list[Correction]
    ) -> Iterator[FingerprintFrame]:
        """Yield the frames that replace this one; ``slots`` are those of the new sketches.

        ``corrections`` are those of the frame, signed anew.
        """
        frame = self._source.frame
        accounted, tombstones = frame.accounted.tolist(), frame.tombstones
        forgotten = zip(tombstones.offsets.tolist(), tombstones.ids.unpack(), strict=True)
        return framer.frames(
            Span(frame.partition, frame.start, frame.end),
            self._signed(slots),
            Aside(
                sorted([*(frame.start + offset for offset in accounted), *self._set_aside]),
                [(frame.start + offset, ident) for offset, ident in forgotten],
                corrections,
            ),
        )

    def _signed(self, slots: int) -> Signed:
        if not self._rows:
            return Signed.nothing(slots)
        source, rows = self._source, self._rows
        frame, ids = source.frame, source.frame.ids.unpack()
        return Signed(
            frame.offsets[rows].astype(np.int64) + frame.start,
            source.times[rows].astype(np.int64),
            frame.checksums[rows],
            [ids[row] for row in rows],
            *map(np.concatenate, zip(*self._parts, strict=True)),
        )


class _Part(NamedTuple):
    """What was signed at once: ``sketches`` uint8[n, slots], ``texts`` and ``shingles``."""

    sketches: npt.NDArray[np.uint8]
    texts: npt.NDArray[np.uint64]
    shingles: npt.NDArray[np.uint32]


_Payloads = Sequence[tuple[Replacement, Sequence[Found]]]


def _batches(found: _Payloads) -> list[RecordBatch]:
    return RecordBatch.of(one.record for _, payloads in found for one in payloads)


def _halves(found: _Payloads) -> tuple[_Payloads, _Payloads] | None:
    """Return the two halves of some payloads; None of a single one."""
    if len(found) > 1:
        middle = len(found) // 2
        return found[:middle], found[middle:]
    frame, payloads = found[0]
    middle = len(payloads) // 2
    return ([(frame, payloads[:middle])], [(frame, payloads[middle:])]) if middle else None


class Signer:
    """Reads payloads and makes their fingerprints."""

    def __init__(
        self, reader: DocumentFormat, fingerprinter: Fingerprinter, deaths: DeadlyDocuments
    ) -> None:
        """Take how to read a document, how to sign its text, and what the worker has died of."""
        self._reader = reader
        self.deaths = deaths
        reader.waiting = deaths.waiting
        self._fingerprinter = fingerprinter
        self._first = FirstCases(_log)

    def sign(self, found: _Payloads) -> None:
        """Give each frame the fingerprints of its payloads; set aside what can't be read.

        Raises:
            StageError: a payload is not that of the document that was judged.
        """
        batches = _batches(found)
        try:
            if self.deaths.careful(batches):
                for frame, payloads in found:
                    for one in payloads:
                        self._sign_alone(frame, one)
            else:
                self.deaths.reading({batch.place: batch.end for batch in batches})
                self._sign(found)
        except (StageError, BusError):
            self.deaths.done()
            raise
        self.deaths.done()

    def corrections(self, frame: Replacement) -> list[Correction]:
        """Return what people correct in a frame, with fingerprints of the allowed texts."""
        signed = []
        for one in frame.corrections:
            try:
                signed.append(signed_correction(one, self._fingerprinter))
            except CorrectionError as error:
                ident = one.id.decode(errors="replace")
                _log.warning("allowance %r is left out of the new index: %s", ident, error)
        return signed

    def _sign_alone(self, frame: Replacement, found: Found) -> None:
        """Sign a document that may kill the worker, unless it has done so twice."""
        record = found.record
        if not self.deaths.poison(record):
            self.deaths.reading_alone(record)
            self._sign([(frame, [found])])
            return
        _log.error(
            "%s[%d]@%d (%d bytes) is left out of the new index as poison: the worker died twice"
            " while it read this document",
            record.topic, record.partition, record.offset, len(record.value or b""),
            extra={
                "topic": record.topic, "partition": record.partition, "offset": record.offset
            },
        )  # fmt: skip
        frame.set_aside(found.row, "poison")

    def _sign(self, found: _Payloads) -> None:
        """Read payloads and make their fingerprints; what nobody can read is left out as poison."""
        guarded(found, self._sign_together, _halves, self._failed)

    def _failed(self, found: _Payloads, error: Exception) -> None:
        frame, (one,) = found[0]
        self._first.poison(one.record, error)
        frame.set_aside(one.row, "poison")

    def _sign_together(self, found: _Payloads) -> None:
        """Read payloads and make their fingerprints in one batch; change nothing if that fails."""
        self._reader.prepare(_batches(found))
        texts: list[str] = []
        parts: list[tuple[Replacement, list[int]]] = []
        unreadable: list[tuple[Replacement, int]] = []
        for frame, payloads in found:
            rows: list[int] = []
            for one in payloads:
                text = self._text(one)
                if text is None:
                    unreadable.append((frame, one.row))
                else:
                    rows.append(one.row)
                    texts.append(text)
            parts.append((frame, rows))
        signed = self._fingerprinter.sign(texts)
        for frame, row in unreadable:
            frame.set_aside(row, "unreadable")
        first = 0
        for frame, rows in parts:
            frame.sign(rows, signed, first)
            first += len(rows)

    def _text(self, found: Found) -> str | None:
        """Return a document's text; None if it can't be read any more."""
        record = found.record
        if record.value is None or checksum(record.value) != found.checksum:
            msg = (
                f"{record.topic}[{record.partition}] offset {record.offset}: the payload is not the"
                " one that was judged: the topic was recreated. No fingerprints can be made from"
                " it: abort the reindex"
            )
            raise StageError(msg)
        try:
            return self._reader.read(record).text
        except Unreadable:
            return None
