"""Limits the size of a burst, so that its transaction ends well within its timeout."""

from __future__ import annotations

_START = 1 / 16
_START_RECORDS = 250
"""The first burst has this share of what the settings allow, or this many records if that is
more. If the link is slow, this costs little."""
_LEAST_BYTES = 64 << 10
_LEAST_RECORDS = 100
"""What every burst may have. A transaction of so little is slow for another reason."""
_QUICK = 1 / 4
"""A share of the timeout."""
_SLOW = 1 / 2
"""A share of the timeout."""
_GROWTH = 3 / 2
"""The growth after a quick one. If the time is all due to the size, the next is not slow."""
_SLIGHT = 9 / 8
"""The growth after one that was neither quick nor slow. Where brokers are busy, it may take as long
whatever its size, and larger ones are the only way to catch up. The next one ends in time."""
_CAREFUL = 51 / 50
"""The growth under a quota. It repeatedly lets many seconds' worth of bytes pass at once, and only
then delays requests for the excess. Until then, every transaction is quick."""


class Pace:
    """Adapts the size of bursts to how long transactions take.

    A slow link, a quota or a busy broker makes transactions slow. A transaction that takes more
    than half of its timeout halves the next burst. If it also fails, or takes the whole timeout,
    the next burst is a quarter. Others let bursts grow again, but only if they were about as large
    as allowed: small ones say nothing about large ones.

    While brokers are away, bursts shrink one after the other without being the cause, down to the
    least. So they grow as soon as transactions end in time again, and fast once these are quick.
    Only where a quota applied, of which brokers tell, they approach that size slowly.
    """

    def __init__(self, records: int, size: int, timeout: float) -> None:
        """Take a burst's maximum records and bytes, and the transaction timeout in seconds."""
        self._most_records = records
        self._most_bytes = size
        self._timeout = timeout
        self._least_records = min(_LEAST_RECORDS, records)
        self._least = min(1.0, _LEAST_BYTES / size)
        self._share = min(1.0, max(_START, _START_RECORDS / records))
        self._wary: float | None = None
        """The least share at which a quota has applied; None if none has since bursts were full."""

    @property
    def records(self) -> int:
        """Return the maximum number of records to read for a burst."""
        return max(self._least_records, round(self._most_records * self._share))

    @property
    def size(self) -> int:
        """Return the maximum number of bytes that a burst may read or write."""
        return round(self._most_bytes * self._share)

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
        elif not committed or not filled:
            factor = 1.0
        elif throttled or (self._wary is not None and self._share >= self._wary):
            factor = _CAREFUL
        else:
            factor = _GROWTH if spent <= _QUICK else _SLIGHT
        self._share = min(1.0, max(self._least, self._share * factor))
        if throttled:
            self._wary = min(self._share, self._wary or 1.0)
        elif self._share >= 1:
            self._wary = None
