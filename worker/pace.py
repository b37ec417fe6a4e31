"""How much a burst may hold, so that its transaction ends well within its timeout."""

from __future__ import annotations

__all__ = ["Pace"]

_START = 1 / 16
_START_RECORDS = 250
"""The first burst has this share of what the settings allow, or this many records if that is
more: a link that turns out slow has then cost little."""
_QUICK = 1 / 4
"""Of the timeout."""
_SLOW = 1 / 2
_EAGER = 3 / 2
"""Until one was too slow: a link that is not slow gets large bursts within a few."""
_GROWTH = 9 / 8
_CAREFUL = 51 / 50
"""From the size on at which bursts were last too slow. A quota lets many seconds' worth pass at
once, again and again, and only then makes requests wait, for what was too much: until then, all
is quick."""


class Pace:
    """Adapts the size of bursts to what transactions take.

    A slow link, a quota or a busy broker shows as transactions that take long. One that takes
    more than half of its timeout halves the next burst; one that fails at that, or takes all of
    it, leaves a quarter. Quick ones let it grow again, but only if they were about as large as
    they were allowed to be: small ones say nothing about large ones.
    """

    def __init__(self, records: int, size: int, timeout: float) -> None:
        """Take the most records and bytes that a burst may hold, and the timeout in seconds."""
        self._most_records = records
        self._most_bytes = size
        self._timeout = timeout
        self._least = 1 / records
        self._share = min(1.0, max(_START, _START_RECORDS / records))
        self._wary: float | None = None
        """The size at which bursts were last too slow; None: none ever was."""

    @property
    def records(self) -> int:
        """Give how many records a burst may be made of; at least one."""
        return max(1, round(self._most_records * self._share))

    @property
    def size(self) -> int:
        """Give how many bytes a burst may be made of, or write; at least one."""
        return max(1, round(self._most_bytes * self._share))

    def filled(self, records: int, size: int) -> bool:
        """Tell whether a burst was about as large as it was allowed to be."""
        return 2 * records >= self.records or 2 * size >= self.size

    def ended(self, seconds: float, *, committed: bool, filled: bool) -> None:
        """Take into account how long a transaction took, and how it ended."""
        spent = seconds / self._timeout
        if spent >= 1 or (spent > _SLOW and not committed):
            factor = 1 / 4
        elif spent > _SLOW:
            factor = 1 / 2
        elif not committed or not filled or spent > _QUICK:
            factor = 1.0
        elif self._wary is None:
            factor = _EAGER
        else:
            factor = _GROWTH if self._share < self._wary else _CAREFUL
        self._share = min(1.0, max(self._least, self._share * factor))
        if factor < 1:
            self._wary = self._share
        elif self._share >= 1:
            self._wary = None
