"""Limits the size of a burst, so that its transaction ends well within its timeout."""

from __future__ import annotations

__all__ = ["Pace"]

_START = 1 / 16
_START_RECORDS = 250
"""The first burst has this share of what the settings allow, or this many records if that is
more. If the link is slow, this costs little."""
_QUICK = 1 / 4
"""A share of the timeout."""
_SLOW = 1 / 2
"""A share of the timeout."""
_GROWTH = 3 / 2
"""Applied to what took at most `_QUICK`, this stays below `_SLOW`."""
_CAREFUL = 51 / 50
"""The growth under a quota. It repeatedly lets many seconds' worth of bytes pass at once, and only
then delays requests for the excess. Until then, every transaction is quick."""


class Pace:
    """Adapts the size of bursts to how long transactions take.

    A slow link, a quota or a busy broker makes transactions slow. A transaction that takes more
    than half of its timeout halves the next burst. If it also fails, or takes the whole timeout,
    the next burst is a quarter. Quick transactions let bursts grow again, but only if they were
    about as large as allowed: small ones say nothing about large ones.

    While brokers are away, bursts shrink without being the cause, one after the other, down to a
    single record. So they grow as soon and as fast as transactions are quick again. Only where a
    quota applied, of which brokers tell, they approach that size slowly.
    """

    def __init__(self, records: int, size: int, timeout: float) -> None:
        """Take a burst's maximum records and bytes, and the transaction timeout in seconds."""
        self._most_records = records
        self._most_bytes = size
        self._timeout = timeout
        self._least = 1 / records
        self._share = min(1.0, max(_START, _START_RECORDS / records))
        self._wary: float | None = None
        """The least share at which a quota has applied; None if none has since bursts were full."""

    @property
    def records(self) -> int:
        """Return the maximum number of records to read for a burst; at least 1."""
        return max(1, round(self._most_records * self._share))

    @property
    def size(self) -> int:
        """Return the maximum number of bytes that a burst may read or write; at least 1."""
        return max(1, round(self._most_bytes * self._share))

    def filled(self, records: int, size: int) -> bool:
        """Return whether a burst was at least half as large as allowed."""
        return 2 * records >= self.records or 2 * size >= self.size

    def ended(
        self, seconds: float, *, committed: bool, filled: bool, throttled: bool = False
    ) -> None:
        """Adapt to a transaction's duration and outcome, and to whether a quota applied."""
        spent = seconds / self._timeout
        if spent >= 1 or (spent > _SLOW and not committed):
            factor = 1 / 4
        elif spent > _SLOW:
            factor = 1 / 2
        elif not committed or not filled or spent > _QUICK:
            factor = 1.0
        elif throttled or (self._wary is not None and self._share >= self._wary):
            factor = _CAREFUL
        else:
            factor = _GROWTH
        self._share = min(1.0, max(self._least, self._share * factor))
        if throttled:
            self._wary = min(self._share, self._wary or 1.0)
        elif self._share >= 1:
            self._wary = None
