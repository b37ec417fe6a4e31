"""The guard around every record: an error that nobody has foreseen costs that record alone.

Each reader of a stranger's bytes raises an error of its own. Whatever else one raises is a mistake
in neardup, and would stop a partition for ever. So what is read together is read again by halves,
until the record is alone whose reading fails.

The first record of each kind of trouble is a line in the log; metrics count the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from worker.bus import BusError, Record, RecordBatch
from worker.bus.deadly_documents import DeadlyDocuments
from worker.stages.base import StageError
from worker.visible import excerpt

_CHARACTERS = 400
_CAUSE_CHARACTERS = 200


class Part(Protocol):
    """Records that are read together: those of a batch, or the payloads of a frame."""

    def __len__(self) -> int:
        """Return how many there are."""

    def rows(self, low: int, high: int) -> Self:
        """Return some of them."""

    def record(self, row: int) -> Record:
        """Return one of them."""


PartT = TypeVar("PartT", bound=Part)
DoneT = TypeVar("DoneT")


@dataclass(frozen=True, slots=True)
class Guard(Generic[PartT, DoneT]):
    """Reads records, so that one whose reading fails, or kills the worker, costs itself alone.

    Attributes:
        deaths: the documents that the worker has died of.
        read: reads parts together; it must change nothing when it fails.
        failed: what becomes of a single record whose reading has failed.
        poison: what becomes of a single record that the worker died of twice; it isn't read.
    """

    deaths: DeadlyDocuments
    read: Callable[[Sequence[PartT]], DoneT]
    failed: Callable[[PartT, Exception], DoneT]
    poison: Callable[[PartT], DoneT]

    def done(self, parts: Sequence[PartT], batches: Sequence[RecordBatch]) -> list[DoneT]:
        """Return what becomes of the parts, in order; ``batches`` have the same records.

        Raises:
            StageError, BusError: what these say is not of a record.
        """
        deaths = self.deaths
        try:
            if deaths.careful(batches):
                singles = (part.rows(at, at + 1) for part in parts for at in range(len(part)))
                done = [made for single in singles for made in self._alone(single)]
            else:
                deaths.reading({batch.place: batch.end for batch in batches})
                done = self.by_halves(parts)
        except (StageError, BusError):
            deaths.done()  # It is no death, and of no record.
            raise
        deaths.done()
        return done

    def _alone(self, single: PartT) -> list[DoneT]:
        """Read a record that may kill the worker, unless it has done so twice."""
        record = single.record(0)
        if self.deaths.poison(record):
            return [self.poison(single)]
        self.deaths.reading_alone(record)
        return self.by_halves([single])

    def by_halves(self, parts: Sequence[PartT]) -> list[DoneT]:
        """Read parts together; if that fails, read each half by itself."""
        try:
            return [self.read(parts)]
        except (StageError, BusError):
            raise
        except Exception as error:  # noqa: BLE001 -- whatever a reader raises
            if len(parts) == 1 and len(parts[0]) <= 1:
                return [self.failed(parts[0], error)]
        return [made for half in _halves(parts) for made in self.by_halves(half)]


def _halves(parts: Sequence[PartT]) -> tuple[Sequence[PartT], Sequence[PartT]]:
    if len(parts) > 1:
        middle = len(parts) // 2
        return parts[:middle], parts[middle:]
    (part,) = parts
    middle = len(part) // 2
    return [part.rows(0, middle)], [part.rows(middle, len(part))]


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
