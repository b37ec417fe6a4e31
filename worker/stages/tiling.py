"""Whether frames follow one another without a gap; none may be applied over one."""

from __future__ import annotations

from collections.abc import Iterable

from worker.coverage import Coverage
from worker.stages.base import StageError
from worker.stages.order import Placed

__all__ = ["FrameOutOfPlace", "covered"]


class FrameOutOfPlace(StageError):  # noqa: N818 -- says what was found
    """A frame does not begin where the one before it ended."""


def covered(shard: int, coverage: Coverage, frames: Iterable[Placed]) -> Coverage:
    """Return what a shard has covered once these frames are applied.

    Raises:
        FrameOutOfPlace: a frame was lost, doubled or moved.
    """
    after = coverage.copy()
    for one in frames:
        frame = one.frame
        expected = after.expected(frame.partition)
        if expected is not None and frame.start != expected:
            msg = (
                f"shard {shard}: the frame at offset {one.number} of the fingerprints covers"
                f" partition {frame.partition} of the documents from offset {frame.start}, and"
                f" {expected} comes next: a frame was lost or doubled. It was not applied. Start"
                " the worker again; if it stops here again, see docs/runbook.md, 'A frame out of"
                " place'"
            )
            raise FrameOutOfPlace(msg)
        after.add(frame.partition, frame.start, frame.end)
    return after
