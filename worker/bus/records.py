"""Records as they are read from a log and written to it, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Self

__all__ = [
    "NO_EPOCHS",
    "UNREADABLE_HEADERS",
    "Claim",
    "Effect",
    "Header",
    "Offset",
    "Outgoing",
    "Polled",
    "Record",
    "TopicPartition",
    "claimed",
    "state_of",
]

Header = tuple[str, bytes | None]


UNREADABLE_HEADERS: tuple[Header, ...] = (("neardup-headers-unreadable", None),)
"""Replaces a header whose name is not UTF-8, or all headers if none of them can be read."""


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Offset(int):
    """A committed offset, and the state in which its group has left the partition.

    It equals an offset of the same state only. A plain number has no state, and neither has what is
    computed from this one.
    """

    state: str

    def __new__(cls, offset: int, state: str) -> Self:
        """Take the number, and a word for the state."""
        made = super().__new__(cls, offset)
        made.state = state
        return made

    def __eq__(self, other: object) -> bool:
        """Return whether number and state are the same."""
        if not isinstance(other, Offset):
            return False
        return (int(self), self.state) == (int(other), other.state)

    def __ne__(self, other: object) -> bool:
        """Return whether number or state differ."""
        return not self == other

    __hash__ = int.__hash__

    def __repr__(self) -> str:
        """Return both."""
        return f"Offset({self}, {self.state!r})"

    def __str__(self) -> str:
        """Return the number."""
        return int.__repr__(self)


def state_of(offset: int) -> str | None:
    """Return the state that was committed with an offset; None if there was none."""
    return offset.state if isinstance(offset, Offset) else None


class Claim(NamedTuple):
    """What a reader knows of a log: every record before an offset has at most this leader epoch.

    A log that has lost its end and grown again has records of a later leader epoch there (KIP-320).
    """

    offset: int
    epoch: int


NO_EPOCHS: Mapping[TopicPartition, int] = MappingProxyType({})


def claimed(
    committed: Mapping[TopicPartition, tuple[int | None, int | None]],
) -> dict[TopicPartition, Claim]:
    """Return what committed offsets and their leader epochs say of a log, where both are known."""
    return {
        partition: Claim(int(offset), epoch)
        for partition, (offset, epoch) in committed.items()
        if offset is not None and epoch is not None and offset >= 0
    }


class Record(NamedTuple):
    """A record as it was read.

    ``timestamp`` is in milliseconds since the epoch, -1 if the log has none. A null
    ``value`` is a tombstone. ``leader_epoch`` counts the leaders that the partition had when the
    record was written; it is -1 if the log doesn't tell.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    leader_epoch: int = -1


class Outgoing(NamedTuple):
    """A record to write; without a partition, murmur2 of the key chooses one.

    If ``timestamp`` is None or 0, the log stamps the record.
    """

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None

    @property
    def size(self) -> int:
        """Return the size of key, value and headers in bytes, to within a few bytes per header."""
        size = len(self.value or b"") + len(self.key or b"")
        for name, value in self.headers:
            size += len(name) + len(value or b"") + 6
        return size


class Queued(NamedTuple):
    """What clients have in their queues: messages, and the bytes of their keys and values."""

    messages: int = 0
    size: int = 0


class Effect(NamedTuple):
    """What a transaction has left in the log, once it has ended.

    ``records`` is whether each record is committed, in the order in which they were written; it
    is empty if none was. ``offsets`` is whether the offsets are committed, None if there were
    none.
    """

    records: Sequence[bool] = ()
    offsets: bool | None = None

    @property
    def partial(self) -> bool:
        """Return whether a part of it is committed, and another is not."""
        parts = {*self.records, self.offsets} - {None}
        return len(parts) > 1


class Polled(NamedTuple):
    """The result of one poll.

    ``assignment`` is None unless the group has rebalanced. After a rebalance it is the *whole*
    set of partitions that the member now owns. They are paused and have no position: the loop
    seeks each one, then resumes it. A poll that returns an assignment returns no records,
    since they would belong to the previous assignment.
    """

    records: Sequence[Record]
    assignment: frozenset[TopicPartition] | None = None
