"""Whether frames follow one another without a gap; none may be applied over one."""

from __future__ import annotations

from collections.abc import Iterable

from worker.bus import TopicPartition
from worker.coverage import Coverage
from worker.frames import BandFrame
from worker.stages.base import StageError

__all__ = ["FrameOutOfPlace", "covered"]


class FrameOutOfPlace(StageError):  # noqa: N818 -- says what was found
    """A frame does not begin where the one before it ended."""


def covered(
    log: TopicPartition, coverage: Coverage, frames: Iterable[tuple[int, BandFrame]]
) -> Coverage:
    """Return what is covered once these frames, with their offsets in the log, are applied.

    Raises:
        FrameOutOfPlace: a frame was lost, doubled or moved.
    """
    after = coverage.copy()
    for offset, frame in frames:
        expected = after.expected(frame.partition)
        if expected is not None and frame.start != expected:
            msg = (
                f"{log.topic}[{log.partition}] at offset {offset} has a frame that covers partition"
                f" {frame.partition} of the documents from offset {frame.start}, and {expected}"
                " comes next: a frame was lost or doubled. It was not applied. Start the worker"
                " again; if it stops here again, see docs/runbook.md, 'A frame out of place'"
            )
            raise FrameOutOfPlace(msg)
        after.add(frame.partition, frame.start, frame.end)
    return after
