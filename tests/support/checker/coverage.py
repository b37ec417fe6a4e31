"""The frames of a run cover each partition of the documents, without gap or overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.support.checker.history import (
    FrameRange,
    History,
    is_tombstone,
    source,
    verdict_of,
)
from worker.wire.frame import POSITION_BITS


def coverage(history: History) -> Iterator[str]:
    """Each partition's frames go on where the last one ended, from its first to its last document.

    And each published document has its sequence number from the frame that covers it.
    """
    if history.frames is None:
        return
    yield from _tiles(history, history.frames)
    by_number = {frame.number: frame for frame in history.frames}
    for kind, record in history.published():
        if kind == "rejected" or is_tombstone(record):
            continue
        partition, offset = source(record)
        frame = by_number.get(verdict_of(record).sequence >> POSITION_BITS)
        if frame is None or frame.partition != partition or not frame.start <= offset < frame.end:
            yield f"{kind} {(partition, offset)}: its sequence number is of another frame, {frame}"


def _tiles(history: History, frames: Sequence[FrameRange]) -> Iterator[str]:
    ends: dict[int, int] = {}
    starts: dict[int, int] = {}
    for number, partition, start, end in frames:
        if end <= start:
            yield f"frame {number} covers nothing: [{start}, {end}) of partition {partition}"
        expected = ends.get(partition, start)
        if start != expected:
            what = "gap" if start > expected else "overlap"
            yield f"{what} before frame {number}: partition {partition}, {expected} to {start}"
        starts.setdefault(partition, start)
        ends[partition] = end
    offsets: dict[int, list[int]] = {}
    for document in history.inputs:
        offsets.setdefault(document.partition, []).append(document.offset)
    for partition, own in offsets.items():
        first, after = starts.get(partition, -1), ends.get(partition, -1)
        if not first <= min(own) or max(own) >= after:
            yield (
                f"partition {partition} has documents {min(own)} to {max(own)},"
                f" and its frames cover [{first}, {after})"
            )
