"""Records as they are read from a log and written to it, as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, groupby
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

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


class RecordBatch:
    """Records of one partition as columns, in the order in which they were read.

    Iterates over its n records. ``offsets`` int64[n]; ``timestamps`` int64[n] in ms since the
    epoch, -1 where the log has none; ``keys`` and ``values`` have n items each. So has ``headers``,
    which is None if no record has any.
    """

    __slots__ = ("headers", "keys", "offsets", "place", "timestamps", "values")

    def __init__(  # noqa: PLR0913, PLR0917 -- the columns of a record
        self,
        place: TopicPartition,
        offsets: npt.NDArray[np.int64],
        timestamps: npt.NDArray[np.int64],
        keys: list[bytes | None],
        values: list[bytes | None],
        headers: list[tuple[Header, ...]] | None = None,
    ) -> None:
        """Take the columns of one or more records."""
        self.place = place
        self.offsets = offsets
        self.timestamps = timestamps
        self.keys = keys
        self.values = values
        self.headers = headers

    @classmethod
    def of(cls, records: Iterable[Record]) -> list[Self]:
        """Return records as batches, of which each has as many as follow each other in one."""
        batches = []
        for place, run in groupby(records, itemgetter(0, 1)):
            _, _, offsets, timestamps, keys, values, headers, _ = zip(*run, strict=True)
            batches.append(
                cls(
                    TopicPartition(*place),
                    np.array(offsets, np.int64),
                    np.array(timestamps, np.int64),
                    list(keys),
                    list(values),
                    list(headers) if any(headers) else None,
                )
            )
        return batches

    @property
    def end(self) -> int:
        """Return the offset after the last record."""
        return int(self.offsets[-1]) + 1

    @property
    def size(self) -> int:
        """Return the bytes of all keys and values."""
        return sum(map(len, filter(None, self.values))) + sum(map(len, filter(None, self.keys)))

    def __len__(self) -> int:
        """Return n."""
        return len(self.values)

    def __iter__(self) -> Iterator[Record]:
        """Return the records."""
        return map(self.record, range(len(self)))

    def record(self, row: int) -> Record:
        """Return one of the records."""
        return Record(
            *self.place,
            int(self.offsets[row]),
            int(self.timestamps[row]),
            self.keys[row],
            self.values[row],
            () if self.headers is None else self.headers[row],
        )

    def rows(self, low: int, high: int) -> Self:
        """Return those from row ``low`` to row ``high``."""
        if (low, high) == (0, len(self)):
            return self
        own = slice(low, high)
        return type(self)(
            self.place,
            self.offsets[own],
            self.timestamps[own],
            self.keys[own],
            self.values[own],
            None if self.headers is None else self.headers[own],
        )

    def only(self, kept: npt.NDArray[np.bool_]) -> Self:
        """Return those for which ``kept`` bool[n] is true."""
        mask = kept.tolist()
        return type(self)(
            self.place,
            self.offsets[kept],
            self.timestamps[kept],
            list(compress(self.keys, mask)),
            list(compress(self.values, mask)),
            None if self.headers is None else list(compress(self.headers, mask)),
        )


class OutgoingBatch(NamedTuple):
    """Records to write to one topic, as columns; see `Outgoing`.

    ``keys`` and ``values``, ``headers`` and ``timestamps`` (ms) have an item for each.
    """

    topic: str
    partition: int | None
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[list[Header]]
    timestamps: Sequence[int | None]

    @classmethod
    def of(cls, record: Outgoing) -> Self:
        """Return a record as a batch."""
        topic, partition, key, value, headers, timestamp = record
        return cls(topic, partition, (key,), (value,), ([*headers],), (timestamp,))

    def records(self) -> Iterator[Outgoing]:
        """Return them one by one."""
        columns = zip(self.keys, self.values, self.headers, self.timestamps, strict=True)
        for key, value, headers, timestamp in columns:
            yield Outgoing(self.topic, self.partition, key, value, tuple(headers), timestamp)


AnyOutgoing: TypeAlias = Outgoing | OutgoingBatch
"""One or more records to write."""


def each(records: Iterable[AnyOutgoing]) -> Iterator[Outgoing]:
    """Return records to write one by one, in their order."""
    for one in records:
        if isinstance(one, OutgoingBatch):
            yield from one.records()
        else:
            yield one


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

    batches: Sequence[RecordBatch]
    assignment: frozenset[TopicPartition] | None = None
