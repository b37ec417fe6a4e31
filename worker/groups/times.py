"""The times of all documents, as long as the index may match them: a match has none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from worker.groups.changes import Changes
from worker.groups.rows import TIMES, UNKNOWN, key
from worker.stages.order import Placed
from worker.wire.frame import POSITION_BITS

_POSITION = (1 << POSITION_BITS) - 1
_BYTES = 8


class DocumentTimes:
    """The times of the documents of frames: their own, and what was now when each came."""

    def __init__(self, changes: Changes, window_ms: int | None) -> None:
        """Take the rows, and the window of the index, or None."""
        self._changes = changes
        self._window = window_ms

    def note(self, placed: Placed, nows: Sequence[int | None], first: int | None) -> None:
        """Note the times of a frame's documents, and drop those that nobody asks for any more.

        ``first`` is the first now there is, if the frame has it: what came before counts as of it.
        """
        if not nows:
            return
        came = [UNKNOWN if now is None else now for now in nows]
        value = np.array([placed.times, came], "<i8").tobytes()
        self._changes.put(TIMES, key(placed.number), value)
        if first is not None:
            for at, row in list(self._changes.of(TIMES)):
                both = np.frombuffer(row, "<i8").reshape(2, -1).copy()
                both[1][both[1] == UNKNOWN] = first
                self._changes.put(TIMES, at, both.tobytes())
        if self._window is not None and nows[-1] is not None:
            # A document counts as of at most one window after now, and lives for another one.
            self._drop(nows[-1] - 2 * self._window)

    def _drop(self, before: int) -> None:
        """Drop the frames whose last document came before a time."""
        old = []
        for at, row in self._changes.of(TIMES):
            if _number(row, len(row) // _BYTES - 1) >= before:
                break
            old.append(at)
        for at in old:
            self._changes.put(TIMES, at, None)

    def of(self, sequence: int) -> tuple[int, int] | None:
        """Return a document's time and what was now when it came, or `UNKNOWN`.

        None if the document came before all that is known, or was dropped.
        """
        row = self._changes.get(TIMES, key(sequence >> POSITION_BITS))
        if row is None:
            return None
        at = sequence & _POSITION
        return _number(row, at), _number(row, len(row) // (2 * _BYTES) + at)


def _number(row: bytes, at: int) -> int:
    return int.from_bytes(row[_BYTES * at : _BYTES * (at + 1)], "little", signed=True)
