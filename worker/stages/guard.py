"""The guard around every record: an error that nobody has foreseen costs that record alone.

Each reader of a stranger's bytes raises an error of its own. Whatever else one raises is a mistake
in neardup, and would stop a partition for ever. So what is read together is read again by halves,
until the record is alone whose reading fails.

The first record of each kind of trouble is a line in the log; metrics count the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from worker.bus import BusError, Record
from worker.stages.base import StageError
from worker.visible import excerpt

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


_CHARACTERS = 400
_CAUSE_CHARACTERS = 200


class FirstCases:
    """Logs the first case of each kind, so that an endless feed of them fills no log."""

    def __init__(self, log: logging.Logger, *, silent: bool = False) -> None:
        """Take where to log; ``silent``: log nothing, since somebody else tells the user."""
        self._log = log
        self._silent = silent
        self._told: set[str] = set()

    def poison(self, record: Record, error: Exception) -> str:
        """Return why a record is rejected whose reading raised an error that nobody has foreseen.

        The traceback of the first error of its kind is logged.
        """
        reason = f"poison: {type(error).__name__}: {excerpt(str(error), _CAUSE_CHARACTERS)}"
        said = f"rejected as {reason}"
        self.tell(f"poison: {type(error).__name__}", record, said, logging.ERROR, error)
        return reason

    def tell(
        self,
        kind: str,
        record: Record,
        said: str,
        level: int = logging.WARNING,
        error: Exception | None = None,
    ) -> None:
        """Log what is the matter with a record, unless a record of its kind was logged before.

        Whoever wrote the record may have chosen a part of ``said``. With ``error``, its traceback
        is logged, too.
        """
        if self._silent or kind in self._told:
            return
        self._told.add(kind)
        self._log.log(
            level,
            "%s[%d]@%d: %s. Later ones like it are not named",
            record.topic, record.partition, record.offset, excerpt(said, _CHARACTERS),
            exc_info=error,
            extra={
                "topic": record.topic, "partition": record.partition, "offset": record.offset
            },
        )  # fmt: skip
