"""How far a restore is, for logs, metrics and whoever watches whether it moves."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic

__all__ = ["RestoreProgress"]

_log = logging.getLogger(__name__)

_EVERY_SECONDS = 10.0


class RestoreProgress:
    """What was done to open a shard. Safe to read and to add to from any thread."""

    def __init__(self, shard: int, clock: Callable[[], float] = monotonic) -> None:
        """Begin with nothing to be fetched."""
        self.shard = shard
        self._clock = clock
        self._lock = threading.Lock()
        self._told_at = clock()
        self.bytes_total = 0
        self.bytes_done = 0
        """Of the snapshot that is being fetched."""
        self.keys_done = 0
        """Of a store whose filter is made anew."""
        self.moved = 0
        """Grows with all that is done, and never goes back: it tells whether anything moves."""

    def begin(self, total: int) -> None:
        """Begin another snapshot, of ``total`` bytes."""
        with self._lock:
            self.bytes_total, self.bytes_done = total, 0
            self._told_at = self._clock()

    def add(self, size: int) -> None:
        """Count bytes that have arrived, and say so every 10 seconds."""
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
        """Count bytes that were read once more, to see whether they are sound."""
        with self._lock:
            self.moved += size

    def keys(self, count: int, total: int) -> None:
        """Count keys that a filter is made of, about ``total``, and say so every 10 seconds."""
        with self._lock:
            self.keys_done += count
            self.moved += count
            if not self._due():
                return
        _log.info(
            "shard %d: makes the filter of its buckets, %d of about %d keys (%.0f %%)",
            self.shard,
            self.keys_done,
            total,
            min(100.0, 100 * self.keys_done / max(1, total)),
        )

    def _due(self) -> bool:
        """Tell whether to say something. Called with the lock held."""
        now = self._clock()
        if now - self._told_at < _EVERY_SECONDS:
            return False
        self._told_at = now
        return True
