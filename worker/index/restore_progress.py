"""The progress of a restore, for logs, metrics and the watchdog."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic

_log = logging.getLogger(__name__)

_EVERY_SECONDS = 10.0


class RestoreProgress:
    """The work done so far to open a shard. Thread-safe."""

    def __init__(self, shard: int, clock: Callable[[], float] = monotonic) -> None:
        """Begin with nothing to fetch."""
        self.shard = shard
        self._clock = clock
        self._lock = threading.Lock()
        self._logged_at = clock()
        self.bytes_total = 0
        self.bytes_done = 0
        """How much of the current snapshot was fetched."""
        self.cells_done = 0
        """How many cells the filters have that were read."""
        self.moved = 0
        """A counter of all work, which never decreases: it shows whether anything moves."""

    def begin(self, total: int) -> None:
        """Start a snapshot of ``total`` bytes."""
        with self._lock:
            self.bytes_total, self.bytes_done = total, 0
            self._logged_at = self._clock()

    def add(self, size: int) -> None:
        """Count fetched bytes, and log the progress every 10 seconds."""
        with self._lock:
            self.bytes_done += size
            self.moved += size
            if not self._due():
                return
            share = 100 * self.bytes_done / max(1, self.bytes_total)
        _log.info(
            "shard %d: fetched %d of %d MB (%.0f %%)",
            self.shard,
            self.bytes_done >> 20,
            self.bytes_total >> 20,
            share,
        )

    def checked(self, size: int) -> None:
        """Count bytes that were read back to check them."""
        with self._lock:
            self.moved += size

    def cells(self, count: int, total: int) -> None:
        """Count cells whose filter was read, of ``total``; log every 10 seconds."""
        with self._lock:
            self.cells_done += count
            self.moved += count
            if not self._due():
                return
        _log.info(
            "shard %d: reading filters, of %d of %d cells (%.0f %%)",
            self.shard,
            self.cells_done,
            total,
            min(100.0, 100 * self.cells_done / max(1, total)),
        )

    def _due(self) -> bool:
        """Return whether to log now. Call with the lock held."""
        now = self._clock()
        if now - self._logged_at < _EVERY_SECONDS:
            return False
        self._logged_at = now
        return True
