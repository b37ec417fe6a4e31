"""The guard around every record: an error that nobody has foreseen costs that record alone.

Each reader of a stranger's bytes raises an error of its own. Whatever else one raises is a mistake
in neardup, and would stop a partition for ever. So what is read together is read again by halves,
until the record is alone whose reading fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from worker.bus import BusError
from worker.stages.base import StageError

WorkT = TypeVar("WorkT")
DoneT = TypeVar("DoneT")


def guarded(
    work: WorkT,
    read: Callable[[WorkT], DoneT],
    halves: Callable[[WorkT], tuple[WorkT, WorkT] | None],
    failed: Callable[[WorkT, Exception], DoneT],
) -> list[DoneT]:
    """Return what ``read`` returns of some work, or of its parts, in order.

    ``halves`` returns None for a single record; of one whose reading fails, ``failed`` returns
    what becomes of it. ``read`` must change nothing when it fails.

    Raises:
        StageError, BusError: what these say is not of a record.
    """
    try:
        return [read(work)]
    except (StageError, BusError):
        raise
    except Exception as error:  # noqa: BLE001 -- whatever a reader raises
        parts = halves(work)
        if parts is None:
            return [failed(work, error)]
    return [done for part in parts for done in guarded(part, read, halves, failed)]
