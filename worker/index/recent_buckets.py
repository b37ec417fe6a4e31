"""The grown buckets that were read or written lately.

In a flood, document after document comes to the same buckets. To read one from RocksDB takes longer
than all that is done with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["RecentBuckets"]

_MOST_BYTES = 16 << 20
_OVERHEAD = 200
"""About what a bucket takes beside its packed entries: its key, two objects, a place in a table."""


class RecentBuckets:
    """Packed buckets by their keys in the store, in about ``most_bytes``.

    There is an older and a younger half. What is asked for comes into the younger one. When that is
    full, it becomes the older one, whose buckets go.

    Threads may read at the same time, but not while a bucket is written.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        """Begin empty."""
        self._most = most_bytes // 2
        self._young: dict[bytes, bytes] = {}
        self._old: dict[bytes, bytes] = {}
        self._young_bytes = self._old_bytes = 0

    @property
    def size_bytes(self) -> int:
        """Return about how much memory they take."""
        return self._young_bytes + self._old_bytes

    def limit(self, most_bytes: int) -> None:
        """Take about so much memory from now on; buckets go if it is much less than before."""
        self._most = most_bytes // 2
        much = self._most * 5 // 4
        if self._old_bytes > much:
            self._old, self._old_bytes = {}, 0
        if self._young_bytes > much:
            self._young, self._young_bytes = {}, 0

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the buckets of keys; None for those that aren't here."""
        young, old = self._young, self._old
        found = list(map(young.get, keys))
        if old:
            for place, (key, bucket) in enumerate(zip(keys, found, strict=True)):
                if bucket is None and (known := old.get(key)) is not None:
                    found[place] = known
                    self._put(key, known)
        return found

    def put(self, buckets: Iterable[tuple[bytes, bytes]]) -> None:
        """Add buckets that were read, or replace them by what is written."""
        for key, bucket in buckets:
            self._put(key, bucket)

    def _put(self, key: bytes, bucket: bytes) -> None:
        before = self._young.get(key)
        self._young[key] = bucket
        self._young_bytes += len(bucket) - len(before) if before is not None else _size(key, bucket)
        if self._young_bytes > self._most:
            self._old, self._old_bytes = self._young, self._young_bytes
            self._young, self._young_bytes = {}, 0


def _size(key: bytes, bucket: bytes) -> int:
    return len(key) + len(bucket) + _OVERHEAD
