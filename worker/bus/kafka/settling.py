"""How long after a commit a coordinator refuses the next transaction of its producer.

A coordinator answers EndTxn once it has logged the decision. Then it writes a marker to each
partition of the transaction. Until all are written, it refuses the next transaction with
CONCURRENT_TRANSACTIONS. librdkafka repeats AddPartitionsToTxn after 20 ms, and AddOffsetsToTxn
after some 20, 40, 80 … ms (``retry.backoff.ms``): several times what the markers take. A producer
that waits a little before it begins gets through at once, and what it reads meanwhile goes with it.

Nothing tells when the markers are written, so the wait is learned from how long it takes to add
offsets: longer by such a pause if the coordinator has refused that.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep

_LONGEST = 0.02
"""Seconds. Longer than librdkafka's own pause, the wait would gain nothing."""
_REPEATED = 0.015
"""Seconds. A refused request takes at least as much longer: 20 ms, less a jitter of a fifth."""
_MORE = 0.001
"""Seconds, which a refused request adds to the wait."""
_LESS = 0.999
"""The factor of the wait after a request that was not refused: one in some hundred is."""
_FORGETTING = 1.01
"""The factor by which the quickest request is forgotten: brokers may become slower."""


class Settling:
    """How long to wait before the next transaction, of one producer. Not thread-safe."""

    def __init__(
        self, clock: Callable[[], float] = monotonic, pause: Callable[[float], None] = sleep
    ) -> None:
        """Begin with the longest wait: only what is not refused shows how quick a request is."""
        self._clock = clock
        self._sleep = pause
        self._pause = _LONGEST
        self._quickest = 0.0
        self._ended: float | None = None
        self._waited = 0.0

    def wait(self, timeout: float = _LONGEST) -> None:
        """Wait up to ``timeout`` seconds until another transaction is probably accepted."""
        if self._ended is None:
            return
        left = min(timeout, self._ended + self._pause - self._clock())
        if left > 0:
            self._sleep(left)

    def begin(self) -> None:
        """Wait for that, and note that a transaction begins."""
        self.wait()
        self._waited = 0.0 if self._ended is None else self._clock() - self._ended

    def ended(self) -> None:
        """Note that a transaction was committed."""
        self._ended = self._clock()

    def anew(self) -> None:
        """Note that there is no transaction that the next one could collide with."""
        self._ended = None

    def took(self, seconds: float) -> None:
        """Learn from how long it took to add offsets to the transaction."""
        if self._ended is None:
            return
        refused = self._quickest > 0 and seconds >= self._quickest + _REPEATED
        self._quickest = min(seconds, self._quickest * _FORGETTING or seconds)
        if refused:
            self._pause = min(_LONGEST, max(self._pause, self._waited) + _MORE)
        elif self._waited < self._pause + _MORE:
            self._pause *= _LESS
