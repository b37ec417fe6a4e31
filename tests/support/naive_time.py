"""The rule of time, in lists: see `lsh.index.clock`, with which it shares nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lsh.index import BucketRules

__all__ = ["Came", "NaiveTime"]


class Came(NamedTuple):
    """A document that came: its own time, if it has one, and what was now then, if anything."""

    own: int | None
    now: int | None


class NaiveTime:
    """What is now, and as of when documents count.

    ``older`` is how many came more than a window older than now.
    """

    def __init__(self, rules: BucketRules) -> None:
        self._rules = rules
        self._times: list[int] = []
        self._first: int | None = None
        self.now: int | None = None
        self.older = 0

    def come(self, own: int | None) -> Came:
        """Let a document come."""
        rules = self._rules
        if own is not None:
            self._times.append(own)
            if len(self._times) >= rules.now_least:
                ranked = sorted(self._times[-rules.now_of :], reverse=True)[rules.now_rank - 1]
                self.now = ranked if self.now is None else max(self.now, ranked)
                self._first = self.now if self._first is None else self._first
        window = rules.window_ms
        if None not in (own, self.now, window):
            assert own is not None and self.now is not None and window is not None  # noqa: PT018
            self.older += own < self.now - window
        return Came(own, self.now)

    def counts_as_of(self, came: Came) -> int | None:
        """Return as of when a document counts; None as long as nobody knows."""
        now = self._first if came.now is None else came.now
        if now is None or came.own is None or came.own <= now:
            return now
        window = self._rules.window_ms
        return came.own if window is None or came.own <= now + window else now

    def lives(self, documents: Sequence[Came]) -> bool:
        """Return whether the entry of some documents lives."""
        if self.now is None or self._rules.window_ms is None:
            return True
        times = [self.counts_as_of(came) for came in documents]
        return max(time for time in times if time is not None) >= self.now - self._rules.window_ms
