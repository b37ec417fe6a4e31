"""What has changed of the rows of a store of groups since the last write."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import takewhile
from typing import Protocol

from rocksdict import RdictIter, WriteBatch

_LAST = b"\xff" * 9
"""It comes after each rest of a key that begins with a number."""


class Rows(Protocol):
    """What rows are read from: a database, or a snapshot of one."""

    def get(self, key: bytes, /) -> bytes | None:
        """Return a row."""

    def iter(self) -> RdictIter:
        """Return an iterator, which is nowhere yet."""


def span(rows: Rows, part: bytes, low: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    """Yield the rows whose keys begin with ``part``, from ``low`` on, without ``part``.

    Raises:
        Exception: rocksdict's, if not all can be read.
    """
    found = rows.iter()
    found.seek(part + low)
    while found.valid():
        at: bytes = found.key()
        if not at.startswith(part):
            return
        yield at[len(part) :], found.value()
        found.next()
    found.status()


class Changes:
    """The rows as they will be after the next write. Keys are divided into a part and a rest."""

    def __init__(self, rows: Rows) -> None:
        """Begin without any."""
        self._rows = rows
        self._parts: dict[bytes, dict[bytes, bytes | None]] = {}

    def get(self, part: bytes, rest: bytes) -> bytes | None:
        """Return a row."""
        changed = self._parts.get(part)
        if changed is not None and rest in changed:
            return changed[rest]
        return self._rows.get(part + rest)

    def put(self, part: bytes, rest: bytes, row: bytes | None = b"") -> None:
        """Change a row; None: it is deleted."""
        self._parts.setdefault(part, {})[rest] = row

    def of(
        self, part: bytes, low: bytes = b"", high: bytes = _LAST
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows of a part in order, from ``low`` to ``high``.

        They must not change meanwhile.
        """
        changed = self._parts.get(part, {})
        new = sorted(rest for rest in changed if low <= rest < high)
        at = 0
        stored = takewhile(lambda row: row[0] < high, span(self._rows, part, low))
        for rest, row in stored:
            upto = bisect_left(new, rest, at)
            yield from self._changed(changed, new[at:upto])
            at = upto
            if rest not in changed:
                yield rest, row
        yield from self._changed(changed, new[at:])

    @staticmethod
    def _changed(
        changed: dict[bytes, bytes | None], some: list[bytes]
    ) -> Iterator[tuple[bytes, bytes]]:
        for rest in some:
            row = changed[rest]
            if row is not None:
                yield rest, row

    def last(self, part: bytes) -> tuple[bytes, bytes] | None:
        """Return the last row of a part."""
        changed = self._parts.get(part, {})
        new = max((rest for rest, row in changed.items() if row is not None), default=b"")
        found = self._rows.iter()
        found.seek_for_prev(part + _LAST)
        while found.valid() and found.key().startswith(part):
            rest = found.key()[len(part) :]
            if rest <= new:
                break
            if rest not in changed:
                return rest, found.value()
            found.prev()
        found.status()
        row = changed.get(new)
        return None if row is None else (new, row)

    def write(self, batch: WriteBatch) -> None:
        """Put them all into a write."""
        for part, changed in self._parts.items():
            for rest, row in changed.items():
                if row is None:
                    batch.delete(part + rest)
                else:
                    batch.put(part + rest, row)
