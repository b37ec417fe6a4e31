"""The records that were read lately, and the pages that were written lately.

Documents that many others are compared with are read again and again: those of full buckets, and
the originals of a wave of copies. They lie scattered over many pages. Most copies come soon after
their originals, whose pages are the newest.
"""

from __future__ import annotations

__all__ = ["RecentPages", "RecentRecords"]

_MOST_BYTES = 8 << 20
_OVERHEAD = 160
"""About what Python takes for a record beside its bytes."""


class RecentRecords:
    """Records by number, at most ``most_bytes`` of them.

    There are two generations. What is read gets into the younger one. When that is half of all, it
    becomes the older one, and what was in the older one and wasn't read since is dropped.

    Threads may read and add at the same time. None may read while something is forgotten.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        """Begin empty."""
        self._most = most_bytes // 2
        self._young: dict[int, bytes] = {}
        self._old: dict[int, bytes] = {}
        self._young_bytes = self._old_bytes = 0

    @property
    def size_bytes(self) -> int:
        """Return about how much memory they take."""
        return self._young_bytes + self._old_bytes

    def get(self, number: int) -> bytes | None:
        """Return a document's record; None if it isn't here."""
        record = self._young.get(number)
        if record is None:
            record = self._old.get(number)
            if record is not None:
                self.put(number, record)
        return record

    def put(self, number: int, record: bytes) -> None:
        """Add a record that was read."""
        if self._young_bytes >= self._most:
            self._old, self._old_bytes = self._young, self._young_bytes
            self._young, self._young_bytes = {}, 0
        self._young[number] = record
        self._young_bytes += len(record) + _OVERHEAD

    def forget(self, number: int) -> None:
        """Drop a record, if it is here."""
        self._young.pop(number, None)
        self._old.pop(number, None)


class RecentPages:
    """The newest pages by number, at most ``most_bytes`` of them.

    Threads may read at the same time, but not while a page is added or forgotten.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        """Begin empty."""
        self._most = most_bytes
        self._pages: dict[int, bytes] = {}
        self.size_bytes = 0

    def get(self, number: int) -> bytes | None:
        """Return a page; None if it isn't here."""
        return self._pages.get(number)

    def put(self, number: int, page: bytes) -> None:
        """Add a page that was written, or replace it; the oldest ones go."""
        self.forget(number)
        self._pages[number] = page
        self.size_bytes += len(page)
        while self.size_bytes > self._most:
            self.forget(next(iter(self._pages)))

    def forget(self, number: int) -> None:
        """Drop a page, if it is here."""
        self.size_bytes -= len(self._pages.pop(number, b""))
