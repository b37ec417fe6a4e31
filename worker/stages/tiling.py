"""Checks that frames tile: no frame may be applied after a gap or an overlap."""

from __future__ import annotations

from collections.abc import Iterable

from worker.stages.base import StageError
from worker.stages.coverage import Coverage
from worker.stages.order import Placed

__all__ = ["FrameOutOfPlace", "covered", "follow"]


class FrameOutOfPlace(StageError):
    """A frame does not begin where the previous one ended."""


def covered(shard: int, coverage: Coverage, frames: Iterable[Placed]) -> Coverage:
    """Return the coverage of a shard once these frames are applied.

    Raises:
        FrameOutOfPlace: a frame was lost, doubled or moved.
    """
    after = coverage.copy()
    for one in frames:
        follow(after, one, f"shard {shard}")
    return after


def follow(coverage: Coverage, one: Placed, reader: str) -> None:
    """Add a frame to what those before it in the log have covered; ``reader`` is who reads it.

    Raises:
        FrameOutOfPlace: a frame was lost, doubled or moved.
    """
    frame = one.frame
    expected = coverage.expected(frame.partition)
    if expected is not None and frame.start != expected:
        msg = (
            f"{reader}: the frame at offset {one.offset} of the fingerprints covers"
            f" partition {frame.partition} of the documents from offset {frame.start}, but"
            f" {expected} comes next: a frame was lost or doubled. It was not applied. Restart"
            " the worker; if it stops here again, see the runbook, 'A frame out of place'"
        )
        raise FrameOutOfPlace(msg)
    coverage.add(frame.partition, frame.start, frame.end)
