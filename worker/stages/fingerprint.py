"""Fingerprint: documents to frames of band keys and sketches; the unreadable to *rejected*."""

from __future__ import annotations

import logging
import sys
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import mmh3
import numpy as np

from lsh import Fingerprinter, Fingerprints
from worker.bus import OffsetOutOfRange, Outgoing, Record, TopicPartition
from worker.documents import Document, DocumentReader, Unreadable
from worker.frames import (
    ACCOUNTED_OFFSETS,
    FRAME_BYTES,
    I64,
    POSITION_BITS,
    U32,
    U64,
    FingerprintFrame,
    Ids,
    encode,
)
from worker.headers import reduced_rejection, rejection
from worker.stages.base import Burst, StageError, StatelessStage

__all__ = ["Fingerprint", "RejectLimit", "checksum"]

_log = logging.getLogger(__name__)

_FIXED_BYTES = 4 + 8 + 8 + 4 + 2 + 5
"""Of a document in a frame, next to id, keys and sketch."""


def checksum(payload: bytes) -> int:
    """Give the 64 bits by which *route* knows the payload again."""
    return mmh3.mmh3_x64_128_utupledigest(payload, 0)[0]


@dataclass(frozen=True, slots=True)
class RejectLimit:
    """At most ``share`` of the last ``window`` documents may be rejected; 1 is no limit."""

    share: float = 0.5
    window: int = 1_000


class _RejectGuard:
    """Stops the worker before a wrong field name drains a topic into *rejected*."""

    def __init__(self, limit: RejectLimit) -> None:
        self._limit = limit
        self._bursts: deque[tuple[int, int]] = deque()
        self._seen = 0
        self._rejected = 0

    def check(self, seen: int, reasons: Counter[str]) -> None:
        rejected = reasons.total()
        self._bursts.append((seen, rejected))
        self._seen += seen
        self._rejected += rejected
        while self._bursts and self._seen - self._bursts[0][0] >= self._limit.window:
            old_seen, old_rejected = self._bursts.popleft()
            self._seen -= old_seen
            self._rejected -= old_rejected
        # Judged from a tenth of the window on: the first burst must not get away with it.
        enough = min(100, self._limit.window // 10)
        if self._seen >= enough and self._rejected > self._limit.share * self._seen:
            common = ", ".join(f"{code} ({count})" for code, count in reasons.most_common(3))
            msg = (
                f"{self._rejected} of the last {self._seen} documents can't be read: {common}."
                " Nothing of this burst was published. Compare the fields that the settings"
                " name with a document, or raise limits.reject_share"
            )
            raise StageError(msg)


class Fingerprint(StatelessStage):
    """The stateless, CPU-heavy stage.

    Emits, per partition and burst, frames that cover every offset read. A frame begins
    at the committed offset, so the frames of a partition tile it over any crash.
    """

    name = "fingerprint"

    def __init__(  # noqa: PLR0913 -- the composition root's business
        self,
        *,
        documents: str,
        fingerprints: str,
        rejected: str,
        layout: str,
        reader: DocumentReader,
        fingerprinter: Fingerprinter,
        reject_limit: RejectLimit,
        frame_bytes: int = FRAME_BYTES,
        skip_deleted: bool = False,
        on_rejected: Callable[[str, int], None] = lambda _code, _count: None,
    ) -> None:
        """Take topic names, and the two parsers; ``on_rejected`` is told codes and counts.

        ``skip_deleted``: where documents were deleted unread, go on from the log's start.
        """
        self.topics = (documents,)
        self._fingerprints = fingerprints
        self._rejected = rejected
        self._layout = layout
        self._reader = reader
        self._fingerprinter = fingerprinter
        self._guard = _RejectGuard(reject_limit)
        self._frame_bytes = frame_bytes
        self._skip_deleted = skip_deleted
        self._on_rejected = on_rejected
        self._next: dict[TopicPartition, int] = {}
        self._reasons: Counter[str] = Counter()

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Go on from the committed offsets.

        What is skipped is covered by the next frame all the same: frames tile.
        """
        self._next = dict(offsets)
        if not self._skip_deleted:
            return dict(offsets)
        starts = {place: max(at, watermarks(place)[0]) for place, at in offsets.items()}
        for place, start in starts.items():
            if start > offsets[place]:
                _log.error(
                    "%s[%d]: offsets %d to %d were deleted before they were read, and are skipped",
                    *place, offsets[place], start - 1,
                )  # fmt: skip
        return starts

    def process(
        self,
        records: Sequence[Record],
        room: int = sys.maxsize,  # noqa: ARG002 -- bounded by the records
    ) -> Burst | None:
        """Read and sign a batch; see `Stage`."""
        if not records:
            return None
        outgoing: list[Outgoing] = []
        reasons: Counter[str] = Counter()
        rows: dict[TopicPartition, list[tuple[Record, Document]]] = {}
        aside: dict[TopicPartition, list[int]] = {}
        ends: dict[TopicPartition, int] = {}
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            ends[partition] = record.offset + 1
            kept = rows.setdefault(partition, [])
            if record.value is None:
                aside.setdefault(partition, []).append(record.offset)
                continue
            try:
                kept.append((record, self._reader.read(record)))
            except Unreadable as error:
                reasons[error.code] += 1
                outgoing.append(self._reject(record, str(error)))
                aside.setdefault(partition, []).append(record.offset)
        texts = [document.text for kept in rows.values() for _, document in kept]
        signed = self._fingerprinter.fingerprint(texts)
        blank = signed.blank
        at = 0
        for partition, kept in rows.items():
            readable = range(at, at + len(kept))
            at += len(kept)
            accounted = aside.get(partition, [])
            for position, (record, _) in zip(readable, kept, strict=True):
                if blank[position]:
                    reasons["empty-text"] += 1
                    reason = "empty-text: nothing is left of the text once it is normalised"
                    outgoing.append(self._reject(record, reason))
                    accounted.append(record.offset)
            positions = [position for position in readable if not blank[position]]
            first = readable.start
            sources = [kept[position - first] for position in positions]
            accounted.sort()
            outgoing += self._frames(
                partition, ends[partition], sources, signed, positions, accounted
            )
            self._next[partition] = ends[partition]
        self._guard.check(len(records), reasons)
        self._reasons = reasons
        return Burst(outgoing, ends)

    def settle(self, positions: Mapping[TopicPartition, int]) -> Burst | None:
        """Cover what holds no documents by frames that hold none, so that frames go on tiling."""
        signed = self._fingerprinter.fingerprint([])
        outgoing: list[Outgoing] = []
        for partition, end in positions.items():
            outgoing += self._frames(partition, end, [], signed, [], [])
            self._next[partition] = end
        return Burst(outgoing, positions)

    def _reject(self, record: Record, reason: str) -> Outgoing:
        return Outgoing(
            self._rejected,
            None,
            record.key,
            record.value,
            rejection(record, self.name, reason),
            record.timestamp if record.timestamp >= 0 else None,
        )

    def _frames(  # noqa: PLR0913, PLR0917 -- what a frame is made of
        self,
        partition: TopicPartition,
        end: int,
        sources: list[tuple[Record, Document]],
        signed: Fingerprints,
        positions: list[int],
        accounted: list[int],
    ) -> Iterator[Outgoing]:
        start = self._next[partition]
        offsets = [record.offset for record, _ in sources]
        cuts = self._cuts([len(document.id) for _, document in sources], signed)
        stops = {offsets[cut] for cut in cuts} | {*accounted[ACCOUNTED_OFFSETS::ACCOUNTED_OFFSETS]}
        low = since = 0
        for stop in [*sorted(stops), end]:
            high = bisect_left(offsets, stop, low)
            until = bisect_left(accounted, stop, since)
            part = sources[low:high]
            rows = positions[low:high]
            frame = FingerprintFrame(
                layout=self._layout,
                partition=partition.partition,
                start=start,
                end=stop,
                offsets=np.array([r.offset - start for r, _ in part], U32).tobytes(),
                times=np.array([d.time for _, d in part], I64).tobytes(),
                checksums=np.array([checksum(r.value or b"") for r, _ in part], U64).tobytes(),
                ids=Ids.pack([d.id for _, d in part]),
                shingles=signed.shingle_counts[rows].astype(U32, copy=False).tobytes(),
                keys=signed.keys[rows].T.astype(U64, copy=False).tobytes(),
                sketches=signed.sketches[rows].tobytes(),
                accounted=(np.array(accounted[since:until], I64) - start).astype(U32).tobytes(),
            )
            yield Outgoing(self._fingerprints, 0, None, encode(frame))
            start, low, since = stop, high, until

    def _cuts(self, id_lengths: list[int], signed: Fingerprints) -> list[int]:
        """Say before which documents a frame must end to stay under the size limit."""
        fixed = _FIXED_BYTES + 8 * signed.keys.shape[1] + signed.sketches.shape[1]
        cuts = []
        size = count = 0
        for row, length in enumerate(id_lengths):
            if count and (size + fixed + length > self._frame_bytes or count >> POSITION_BITS):
                cuts.append(row)
                size = count = 0
            size += fixed + length
            count += 1
        return cuts

    def reduced(self, record: Outgoing) -> Outgoing | None:
        """Say of a rejected record where it is to be found, if it can't be published."""
        return reduced_rejection(record) if record.topic == self._rejected else None

    def committed(self) -> None:
        """Count what was rejected."""
        for code, count in self._reasons.items():
            self._on_rejected(code, count)
        self._reasons = Counter()

    def out_of_range(self, error: OffsetOutOfRange) -> int:
        """Refuse to skip documents, unless that is what the settings say.

        Raises:
            StageError: it is not, or the position is after the log's end.
        """
        if self._skip_deleted and error.position < error.low:
            _log.error("%s: documents were deleted before they were read, and are skipped", error)
            return error.low
        msg = (
            f"{error}: the documents between were deleted before they were read, or the topic was"
            " made anew. See docs/runbook.md, 'Documents that were deleted unread'"
        )
        raise StageError(msg)
