"""The memory that all stores of a process share: one block cache, one limit of write buffers.

What a store can't do without, its newest cells and the filters of its runs, grows with its
documents. The block cache gives way to it, down to a least size, and so does what was read lately.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from rocksdict import Cache, WriteBufferManager

from worker.settings.memory import MOST_CACHE

_log = logging.getLogger(__name__)

_LEAST_CACHE = 8 << 20
"""Of filters and indexes of RocksDB's tables, and blocks on their way to be merged."""
_STEP = 1 << 20
"""The cache keeps its size until it must change by this many bytes: a change evicts blocks."""


class StoreMemory:
    """Divides memory among the stores of a process. Thread-safe.

    Attributes:
        cache: for blocks, of all stores.
        buffers: counts the write buffers of all stores. A store flushes when there are too many.
    """

    def __init__(self, size: int, *, write_buffers: int, cache: int | None = None) -> None:
        """Take the bytes that all stores may keep in memory, and the part for write buffers.

        A ``cache`` of a fixed size gives nothing up; else it has at most `MOST_CACHE`.
        """
        self.buffers = WriteBufferManager(write_buffers, False)  # noqa: FBT003 -- rocksdict's
        self._fixed = cache
        self._size = size - write_buffers
        self._lock = threading.Lock()
        self._held: dict[Path, int] = {}
        self._capacity = self._fitting()
        self.cache = Cache(self._capacity)
        self._told = False

    @property
    def held(self) -> int:
        """Return the bytes that stores can't do without."""
        return sum(list(self._held.values()))

    @property
    def stores(self) -> list[Path]:
        """Return the paths of the open stores."""
        return list(self._held)

    @property
    def capacity(self) -> int:
        """Return the most that the block cache may take now, in bytes."""
        return self._capacity

    @property
    def most_held(self) -> int:
        """Return the most that fits of what stores can't do without, in bytes."""
        cache = _LEAST_CACHE if self._fixed is None else self._fixed
        return max(0, self._size - cache)

    @property
    def spare(self) -> int:
        """Return how much more each store may hold if all hold as much more, in bytes."""
        return max(0, self.most_held - self.held) // max(1, len(self._held))

    @property
    def short(self) -> bool:
        """Return whether the stores need more than all of the memory."""
        return self.held + self._fitting() > self._size

    def taken(self) -> dict[str, tuple[int, int]]:
        """Return what all stores take, and their share, in bytes by part."""
        return {
            "cache": (self.cache.get_usage(), self._capacity),
            "write_buffers": (self.buffers.get_usage(), self.buffers.get_buffer_size()),
            "postings": (self.held, self.most_held),
        }

    def hold(self, store: Path, size: int) -> None:
        """Take note of what a store can't do without, in bytes; it replaces what it was."""
        if self._held.get(store) != size:
            with self._lock:
                self._held[store] = size
                self._adapt()

    def release(self, store: Path) -> None:
        """Take note that a store is closed."""
        with self._lock:
            self._held.pop(store, None)
            self._adapt()

    def _fitting(self) -> int:
        """Return the size of the cache that fits."""
        if self._fixed is not None:
            return self._fixed
        return min(MOST_CACHE, max(_LEAST_CACHE, self._size - self.held))

    def _adapt(self) -> None:
        capacity = self._fitting()
        least = capacity == _LEAST_CACHE
        if abs(capacity - self._capacity) >= _STEP or (least and capacity < self._capacity):
            self._capacity = capacity
            self.cache.set_capacity(capacity)
        short = self.short
        if short and not self._told:
            _log.warning(
                "the index needs %d MiB of memory for its newest cells and filters, and"
                " worker.memory leaves %d for them: the worker takes more than worker.memory. Raise"
                " it, or see 'Memory' in docs/how-to/operate.md",
                self.held >> 20,
                self.most_held >> 20,
            )
        self._told = short
