"""The index's time at each document in the order, and the times of all documents.

For the clock, see `core/src/index/clock.rs`. A match has no time, so those of all documents are
kept as long as the index may match them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence

import numpy as np

from lsh.index import NO_TIME, BucketRules
from worker.groups.rows import TIMES, UNKNOWN, Changes, key
from worker.stages.order import Placed
from worker.wire.frame import POSITION_BITS

_POSITION = (1 << POSITION_BITS) - 1
_BYTES = 8


class IndexClock:
    """The index's now: the 16th latest of the last 64 times, once there are 32. It never goes back.

    ``now`` is in ms; None until there is one.
    """

    def __init__(self, rules: BucketRules, packed: bytes = b"") -> None:
        """Go on where `packed` was taken. The rules say how many times have a vote."""
        self._rank, self._least = rules.now_rank, rules.now_least
        self._window = rules.window_ms
        now, *times = np.frombuffer(packed, "<i8").tolist() or [NO_TIME]
        self.now: int | None = None if now == NO_TIME else now
        self._recent = deque(times, rules.now_of)
        self._sorted = sorted(times)

    def packed(self) -> bytes:
        """Return what the clock goes on from."""
        now = NO_TIME if self.now is None else self.now
        return np.array([now, *self._recent], "<i8").tobytes()

    def come(self, times: Sequence[int]) -> list[int | None]:
        """Let documents come, in their order; return what is now at each of them.

        One without a time (`NO_TIME`) has no vote.
        """
        recent, ordered, full = self._recent, self._sorted, self._recent.maxlen
        nows = []
        for time in times:
            if time != NO_TIME:
                if len(recent) == full:
                    del ordered[bisect_left(ordered, recent[0])]
                recent.append(time)
                insort(ordered, time)
                if len(ordered) >= self._least:
                    ranked = ordered[-self._rank]
                    if self.now is None or ranked > self.now:
                        self.now = ranked
            nows.append(self.now)
        return nows

    def counts_as_of(self, time: int, now: int) -> int:
        """Return as of when a document counts that has this time, and came at ``now``."""
        if time <= now or (self._window is not None and time > now + self._window):
            return now
        return time


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
