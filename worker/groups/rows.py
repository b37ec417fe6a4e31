"""The rows of a store of groups."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple, Self

import msgspec

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
    """How far the groups are.

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
