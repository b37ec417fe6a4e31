"""Sequence: one partition's order becomes *the* order; frames are cut for the shards."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from worker.bus import OffsetOutOfRange, Outgoing, Record, TopicPartition
from worker.frames import I64, U64, BandFrame, FingerprintFrame, decode, encode
from worker.stages.base import Burst, StageError, StatelessStage

__all__ = ["Sequencer", "columns_of"]

_log = logging.getLogger(__name__)


def columns_of(shard: int, shards: int, columns: int) -> range:
    """Give the key columns (bands, then the exact text) that a shard owns."""
    return range(shard, columns, shards)


class Sequencer(StatelessStage):
    """Cuts each fingerprint frame by columns: shard p gets the keys of its bands.

    Touches frames, never documents. A frame's number is its offset in ``fingerprints``,
    so there is no counter to keep.
    """

    name = "sequence"

    def __init__(  # noqa: PLR0913 -- the composition root's business
        self,
        *,
        fingerprints: str,
        bands: str,
        layout: str,
        shards: int,
        columns: int,
        future_allowance_ms: int = 60_000,
    ) -> None:
        """Take topic names and how many key columns there are (bands + 1)."""
        self.topics = (fingerprints,)
        self._bands = bands
        self._layout = layout
        self._shards = shards
        self._columns = columns
        self._allowance = future_allowance_ms

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Go on from the committed offset, or from the start of a log that begins behind it.

        Whether frames were deleted unread was checked at the worker's start, where all
        groups' offsets are known.
        """
        starts = {}
        for place, offset in offsets.items():
            low, _ = watermarks(place)
            if low > offset:
                _log.warning(
                    "%s[%d] begins at offset %d by now; this group had read up to %d",
                    *place, low, offset,
                )  # fmt: skip
            starts[place] = max(low, offset)
        return starts

    def process(
        self,
        records: Sequence[Record],
        room: int = sys.maxsize,  # noqa: ARG002 -- bounded by the records
    ) -> Burst | None:
        """Cut frames; see `Stage`."""
        if not records:
            return None
        outgoing = [part for record in records for part in self._cut(record)]
        last = records[-1]
        return Burst(outgoing, {TopicPartition(last.topic, last.partition): last.offset + 1})

    def _cut(self, record: Record) -> list[Outgoing]:
        frame = decode(FingerprintFrame, record.value, self._layout)
        times = np.frombuffer(frame.times, I64)
        now = record.timestamp
        times = np.where(times < 0, now, np.minimum(times, now + self._allowance))
        count = len(times)
        keys = np.frombuffer(frame.keys, U64).reshape(self._columns, count)
        parts = []
        for shard in range(self._shards):
            part = BandFrame(
                layout=self._layout,
                partition=frame.partition,
                start=frame.start,
                end=frame.end,
                shard=shard,
                number=record.offset,
                now=now,
                count=count,
                offsets=frame.offsets,
                times=times.tobytes(),
                checksums=frame.checksums if shard == 0 else b"",
                ids=frame.ids,
                shingles=frame.shingles,
                keys=keys[shard :: self._shards].tobytes(),
                sketches=frame.sketches,
                accounted=frame.accounted if shard == 0 else None,
            )
            parts.append(Outgoing(self._bands, shard, None, encode(part)))
        return parts

    def settle(self, positions: Mapping[TopicPartition, int]) -> Burst | None:
        """Move on, and write nothing: frames tile the documents, not this log."""
        return Burst((), positions)

    def out_of_range(self, error: OffsetOutOfRange) -> int:
        """Go on from the log's start if retention has taken a marker; refuse to skip frames.

        A frame is never alone in the log: the marker of its transaction follows.

        Raises:
            StageError: frames may have been deleted unread, or the position is after the end.
        """
        if error.low - error.position == 1:
            return error.low
        msg = (
            f"{error}: frames were deleted before they were read, or the topic was made anew or has"
            " lost its end; see `neardup topics verify`"
        )
        raise StageError(msg)
