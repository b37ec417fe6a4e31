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
_EAGER = 3 / 2
"""The growth until a burst was too slow: on a fast link, bursts are large after a few."""
_GROWTH = 9 / 8
"""The growth below the size at which bursts were last too slow."""
_CAREFUL = 51 / 50
"""The growth from that size on. A quota repeatedly lets many seconds' worth of bytes pass at once,
and only then delays requests for the excess. Until then, every transaction is quick."""


class Pace:
    """Adapts the size of bursts to how long transactions take.

    A slow link, a quota or a busy broker makes transactions slow. A transaction that takes more
    than half of its timeout halves the next burst. If it also fails, or takes the whole timeout,
    the next burst is a quarter. Quick transactions let bursts grow again, but only if they were
    about as large as allowed: small ones say nothing about large ones.
    """

    def __init__(self, records: int, size: int, timeout: float) -> None:
        """Take a burst's maximum records and bytes, and the transaction timeout in seconds."""
        self._most_records = records
        self._most_bytes = size
        self._timeout = timeout
        self._least = 1 / records
        self._share = min(1.0, max(_START, _START_RECORDS / records))
        self._wary: float | None = None
        """The share to which the last slow burst reduced; None if no burst was too slow."""

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

    def ended(self, seconds: float, *, committed: bool, filled: bool) -> None:
        """Adapt to a transaction's duration and outcome."""
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
