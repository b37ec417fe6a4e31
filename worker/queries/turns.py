"""Whose turn it is: that of queries, or of the thread that applies the log to a shard.

Python runs one thread at a time. A query is short, and somebody waits for it; what the thread does
with a frame takes longer, and nobody does. So the thread gives way between its steps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep

__all__ = ["Precedence", "ShardLock"]

_PATIENCE = 2.0
"""How much longer the thread may wait than it works. So it gets a third of the time, at the
least."""
_LONGEST_SECONDS = 0.01
"""How long it may wait at a time, and how much of what it hasn't waited is left for later. The
steps of its work are shorter than a query."""
_WORK_SECONDS = 0.001
_PAUSE_SECONDS = 0.00005
"""After so much work, the thread pauses for so long even if nobody asks: else whoever is to receive
a query hardly gets Python. Where the thread lets go of it within its work, it has it back before
another one is awake."""


class Precedence:
    """Tells the thread that applies the log when queries are being answered."""

    def __init__(
        self,
        clock: Callable[[], float] = monotonic,
        pause: Callable[[float], object] = sleep,
    ) -> None:
        """Begin without queries; ``clock`` returns seconds, and ``pause`` waits for some."""
        self._clock = clock
        self._pause = pause
        self._condition = threading.Condition()
        self._asking = 0
        self._since = clock()
        self._patience = 0.0
        self._paused = self._since

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Have the thread give way to what is done within. Several threads may be within."""
        with self._condition:
            self._asking += 1
        try:
            yield
        finally:
            with self._condition:
                self._asking -= 1
                if not self._asking:
                    self._condition.notify_all()

    def give_way(self) -> None:
        """Wait until no query is being answered, but in proportion to what was done."""
        now = self._clock()
        patience = self._patience + _PATIENCE * (now - self._since)
        self._patience, self._since = min(patience, _LONGEST_SECONDS), now
        if self._asking:
            with self._condition:
                self._condition.wait_for(self._nobody_asks, self._patience)
            self._since = self._paused = self._clock()
            self._patience = max(0.0, self._patience - (self._since - now))
        elif now - self._paused >= _WORK_SECONDS:
            self._pause(_PAUSE_SECONDS)
            self._since = self._paused = self._clock()

    def _nobody_asks(self) -> bool:
        return not self._asking


class ShardLock:
    """Keeps readers of a shard and whoever writes to it apart. Several may read at once.

    As a context manager, it is the writer's: nobody reads within. Who comes later than the writer
    reads after it.
    """

    def __init__(self, precedence: Precedence) -> None:
        """Begin free; ``precedence`` is that of all shards."""
        self.give_way = precedence.give_way
        self._condition = threading.Condition()
        self._reading = 0
        self._writing = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep the writer out."""
        with self._condition:
            self._condition.wait_for(lambda: not self._writing)
            self._reading += 1
        try:
            yield
        finally:
            with self._condition:
                self._reading -= 1
                if not self._reading:
                    self._condition.notify_all()

    def __enter__(self) -> None:
        """Wait until nobody reads, and keep readers out."""
        with self._condition:
            self._writing = True
            self._condition.wait_for(lambda: not self._reading)

    def __exit__(self, *_: object) -> None:
        """Let readers in."""
        with self._condition:
            self._writing = False
            self._condition.notify_all()
