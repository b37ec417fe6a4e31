"""The index's time, for each document in the order; see `core/src/index/clock.rs`."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence

import numpy as np

from lsh.index import NO_TIME, BucketRules


class IndexClock:
    """What is now: the 16th latest of the last 64 times, once there are 32. It never goes back.

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
