"""The rows of a store of groups, and what has changed of them since the last write."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import takewhile
from struct import Struct
from typing import NamedTuple, Protocol, Self

import msgspec
from rocksdict import RdictIter, WriteBatch

from lsh.index import NO_TIME

PROGRESS = b"!"
HEADER = b"#"
PENDING = b"a"
"""Offset of a frame; shard -> what it has found, until all shards have noted the frame."""
FORGOTTEN = b"f"
"""Digest of an id -> the sequence number from which on a document with it isn't forgotten."""
GROUPS = b"g"
"""Group -> `Group`."""
IDS = b"i"
"""Digest of an id; sequence -> nothing: the members that have it."""
MEMBERS = b"m"
"""Sequence -> the group that it is a member of."""
NAMES = b"p"
"""Sequence of the earliest document -> the group that is called by it."""
QUEUE = b"q"
"""When something is due, sequence -> nothing: each member that may leave or cool down, once."""
BY_GROUP = b"r"
"""Group; sequence -> `Member`."""
TIMES = b"t"
"""Number of a frame -> its documents' times, and what was now when each came: int64[2, n]."""
BY_SIZE, BY_GROWTH, BY_LAST = b"x", b"y", b"z"
"""A number, descending, and the group -> nothing."""

UNKNOWN = -(1 << 63)
"""As of when a document counts that came before there was a now."""
FOREVER = (1 << 63) - 1
_MOST = (1 << 64) - 1
_LAST = b"\xff" * 9
"""It comes after each rest of a key that begins with a number."""

_group = Struct("<QQQQq")
_member = Struct("<qqqqB")


def key(value: int) -> bytes:
    """Return a number as a part of a key, in whose order numbers are."""
    return value.to_bytes(8)


def number(part: bytes) -> int:
    """Return the number that `key` packed."""
    return int.from_bytes(part)


def moment(time: int) -> bytes:
    """Return a time in ms as a part of a key, in whose order times are."""
    return key(time - UNKNOWN)


def descending(value: int) -> bytes:
    """Return a number as a part of a key, the largest first."""
    return key(_MOST - value)


class Group(NamedTuple):
    """A group.

    name: the sequence number of the earliest document that it ever had, by which it is called.
    growth: how many members count as of at most an hour before now.
    last, counted: the sequence number of its latest member, and as of when that counts.
    """

    name: int
    size: int
    growth: int
    last: int
    counted: int

    def packed(self) -> bytes:
        """Return its row."""
        return _group.pack(*self)

    @classmethod
    def unpacked(cls, row: bytes) -> Self:
        """Return the group of a row."""
        return cls(*_group.unpack(row))


class Member(NamedTuple):
    """A member of a group.

    time: its own time in ms, or `NO_TIME`. counted: as of when it counts, or `UNKNOWN`.
    until: it leaves when this is past. due: when that is looked at. fresh: it counts for the
    group's growth.
    """

    time: int
    counted: int
    until: int
    due: int
    fresh: bool
    id: bytes

    def packed(self) -> bytes:
        """Return its row."""
        return _member.pack(*self[:5]) + self.id

    @classmethod
    def unpacked(cls, row: bytes) -> Self:
        """Return the member of a row."""
        time, counted, until, due, fresh = _member.unpack_from(row)
        return cls(time, counted, until, due, bool(fresh), row[_member.size :])


class Progress(msgspec.Struct, frozen=True, array_like=True):
    """The progress of the groups.

    reached: for each shard, the offset in the log before which its matches were noted.
    clock: the index's time at the least of these.
    begun: the offset from which on documents were noted. groups: how many there are.
    erasing: whether files may still have something that was forgotten.
    """

    reached: list[int]
    clock: bytes = b""
    begun: int = 0
    groups: int = 0
    erasing: bool = False

    @property
    def position(self) -> int:
        """Return the offset before which all documents have joined their groups."""
        return min(self.reached)

    @property
    def now(self) -> int | None:
        """Return the index's time in ms; None before there is one."""
        now = int.from_bytes(self.clock[:8], "little", signed=True) if self.clock else NO_TIME
        return None if now == NO_TIME else now

    def packed(self) -> bytes:
        """Return its row."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def unpacked(cls, row: bytes) -> Self:
        """Return the progress of a row."""
        return msgspec.msgpack.decode(row, type=cls)


class Rows(Protocol):
    """A source of rows: a database, or a snapshot of one."""

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
