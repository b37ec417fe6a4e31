"""The new fingerprints of a frame's documents, from the first payload to complete frames."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from lsh import Fingerprinter
from lsh._core import Signed as Signature
from worker.bus import Record, RecordBatch
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
from worker.stages.guard import FirstCases, Guard
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
    """A frame, and the new fingerprints of its documents so far.

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
    """Documents signed at once: ``sketches`` uint8[n, slots], ``texts`` and ``shingles``."""

    sketches: npt.NDArray[np.uint8]
    texts: npt.NDArray[np.uint64]
    shingles: npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class FoundPayloads:
    """Payloads that are here, of documents of one frame."""

    frame: Replacement
    found: Sequence[Found]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.found)

    def rows(self, low: int, high: int) -> FoundPayloads:
        """Return some of them."""
        return FoundPayloads(self.frame, self.found[low:high])

    def record(self, row: int) -> Record:
        """Return one of them."""
        return self.found[row].record


def _batches(parts: Sequence[FoundPayloads]) -> list[RecordBatch]:
    return RecordBatch.of(found.record for part in parts for found in part.found)


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
        self._guard = Guard(deaths, self._sign_together, self._failed, self._deadly)

    def sign(self, parts: Sequence[FoundPayloads]) -> None:
        """Give each frame the fingerprints of its payloads; set aside what can't be read.

        Raises:
            StageError: a payload is not that of the document that was judged.
        """
        self._guard.done(parts, _batches(parts))

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

    @staticmethod
    def _deadly(part: FoundPayloads) -> None:
        """Leave out a document that has killed the worker twice."""
        record = part.record(0)
        _log.error(
            "%s[%d]@%d (%d bytes) is left out of the new index as poison: the worker died twice"
            " while it read this document",
            record.topic, record.partition, record.offset, len(record.value or b""),
            extra={
                "topic": record.topic, "partition": record.partition, "offset": record.offset
            },
        )  # fmt: skip
        part.frame.set_aside(part.found[0].row, "poison")

    def _failed(self, part: FoundPayloads, error: Exception) -> None:
        """Leave out a document whose reading raises an error that nobody has foreseen."""
        self._first.poison(part.record(0), error)
        part.frame.set_aside(part.found[0].row, "poison")

    def _sign_together(self, parts: Sequence[FoundPayloads]) -> None:
        """Read payloads and make their fingerprints in one batch; change nothing if that fails."""
        self._reader.prepare(_batches(parts))
        texts: list[str] = []
        rows_of: list[tuple[Replacement, list[int]]] = []
        unreadable: list[tuple[Replacement, int]] = []
        for part in parts:
            rows: list[int] = []
            for found in part.found:
                text = self._text(found)
                if text is None:
                    unreadable.append((part.frame, found.row))
                else:
                    rows.append(found.row)
                    texts.append(text)
            rows_of.append((part.frame, rows))
        signed = self._fingerprinter.sign(texts)
        for frame, row in unreadable:
            frame.set_aside(row, "unreadable")
        first = 0
        for frame, rows in rows_of:
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
