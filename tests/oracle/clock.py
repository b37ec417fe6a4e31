"""The rule of time, in lists."""

from collections.abc import Iterable
from typing import NamedTuple

from lsh.index import BucketRules


class Came(NamedTuple):
    """A document that came: its own time, if it has one, and what was now then, if anything."""

    own: int | None
    now: int | None


class NaiveClock:
    """What is now, and as of when documents count. Times are in ms.

    Now is the `now_rank`-th latest of the last `now_of` times, once there are `now_least`, and
    never goes back. `older` is how many documents came more than a window older than now.
    """

    def __init__(self, rules: BucketRules) -> None:
        self._rules = rules
        self._times: list[int] = []
        self._first: int | None = None
        self.now: int | None = None
        self.older = 0

    def come(self, own: int | None) -> Came:
        """Let a document come. One without a time has no vote."""
        rules, window = self._rules, self._rules.window_ms
        if own is not None:
            self._times.append(own)
            if len(self._times) >= rules.now_least:
                ranked = sorted(self._times[-rules.now_of :])[-rules.now_rank]
                self.now = ranked if self.now is None else max(self.now, ranked)
                self._first = self.now if self._first is None else self._first
        if own is not None and self.now is not None and window is not None:
            self.older += own < self.now - window
        return Came(own, self.now)

    def counts_as_of(self, came: Came) -> int | None:
        """Return as of when a document counts; None as long as nobody knows.

        It counts as of now, or at its own time if that is later by at most one window. What came
        before there was a now counts as of the first one.
        """
        now, window = self._first if came.now is None else came.now, self._rules.window_ms
        if now is None or came.own is None or came.own <= now:
            return now
        return came.own if window is None or came.own <= now + window else now

    def latest(self, documents: Iterable[Came]) -> int | None:
        """Return as of when the entry of some documents counts.

        None if nothing expires: without a window, or as long as there is no now.
        """
        if self.now is None or self._rules.window_ms is None:
            return None
        times = [self.counts_as_of(came) for came in documents]
        return max(time for time in times if time is not None)

    def lives(self, documents: Iterable[Came]) -> bool:
        """Return whether the entry of some documents lives."""
        time, window = self.latest(documents), self._rules.window_ms
        return time is None or self.now is None or window is None or time >= self.now - window
