"""Keeps queries and whoever applies the log to a shard apart."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ShardLock:
    """Keeps readers of a shard and whoever writes to it apart. Several may read at once.

    As a context manager, it is the writer's: nobody reads within. Who comes later than the writer
    reads after it.
    """

    def __init__(self) -> None:
        """Begin free."""
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
