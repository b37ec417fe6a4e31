"""What a stage's loop needs from a log: records, a seat in a group, a transaction.

Two adapters implement the port: `worker.bus.kafka` and `worker.bus.memory`. One
contract suite (``tests/contract``) runs against both, so whatever the loop relies on
is written down here and tested there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Protocol, Self

__all__ = [
    "UNREADABLE_HEADERS",
    "Aborted",
    "Bus",
    "BusError",
    "Fenced",
    "Header",
    "Member",
    "OffsetOutOfRange",
    "OutcomeUnknown",
    "Outgoing",
    "PartitionUnreadable",
    "Polled",
    "Reader",
    "Record",
    "Refused",
    "TopicPartition",
    "TopicRecreated",
]

Header = tuple[str, bytes | None]


UNREADABLE_HEADERS: tuple[Header, ...] = (("neardup-headers-unreadable", None),)
"""Stands for a header whose name is not UTF-8, or for all, where the others can't be had either."""


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Record(NamedTuple):
    """A record as it was read.

    ``timestamp`` is in milliseconds since the epoch, -1 if the log gave none. A null
    ``value`` is a tombstone.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class Outgoing(NamedTuple):
    """A record to be written; without a partition, murmur2 of the key decides.

    Without a ``timestamp``, or with 0, the log stamps the record itself.
    """

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None

    @property
    def size(self) -> int:
        """Give the bytes of key, value and headers, within a few a header."""
        size = len(self.value or b"") + len(self.key or b"")
        for name, value in self.headers:
            size += len(name) + len(value or b"") + 6
        return size


class Polled(NamedTuple):
    """What one poll brought.

    ``assignment`` is None while the group's assignment stands. After a rebalance it is
    the *whole* set of partitions that the member now owns; they are paused and have no
    position: the loop seeks each of them, and then resumes it. Records of a poll that
    carries an assignment belong to the time before it, so there are none.
    """

    records: Sequence[Record]
    assignment: frozenset[TopicPartition] | None = None


class BusError(Exception):
    """Fatal: the member can't go on; the message says what to do."""


class PartitionUnreadable(BusError):  # noqa: N818 -- says how it stands
    """A partition can't be read on from where it is; others can."""

    def __init__(self, partition: TopicPartition, position: int, why: str) -> None:
        """Name the partition, the offset of the next record that is wanted, and the reason."""
        self.partition = partition
        self.position = position
        super().__init__(
            f"{partition.topic}[{partition.partition}] can't be read from offset {position}: {why}"
        )


class Fenced(BusError):  # noqa: N818 -- Kafka's word for it
    """Another process runs under this instance's name, or the group evicted it for good."""


class TopicRecreated(BusError):  # noqa: N818 -- says what happened
    """A topic is not the one that the group has read, but a later one of the same name."""

    def __init__(self, topic: str, was: str, now: str) -> None:
        """Name the topic, the id that it had, and the one that it has."""
        self.topic = topic
        self.was = was
        self.now = now
        super().__init__(
            f"{topic} was deleted and made anew: the group has read the topic with the id {was},"
            f" and {topic} has the id {now} now. What the old topic still held was neither judged"
            " nor rejected, and nothing of the new one was read. See docs/runbook.md, 'A topic was"
            " made anew'"
        )


class Refused(BusError):  # noqa: N818 -- names what happened to the records
    """Topics don't take these records, and the transaction was rolled back.

    Others of the transaction may have been refused beside them, as a whole batch is. With a
    smaller version of the largest the loop tries again; without one this is fatal.
    """

    def __init__(self, text: str, records: Sequence[Outgoing]) -> None:
        """Say what was refused, and which records."""
        self.records = records
        super().__init__(text)


class Aborted(Exception):  # noqa: N818 -- the transaction was, nothing is wrong with the program
    """The transaction was rolled back: nothing of it will ever be visible.

    The loop drops what it computed, and reads on from the committed offsets.
    """


class OutcomeUnknown(Exception):  # noqa: N818 -- names the state, as Kafka's documentation does
    """Nobody knows whether the transaction was committed.

    The loop calls `Member.renew`, and then reads on from the committed offsets.
    """


class OffsetOutOfRange(Exception):  # noqa: N818 -- named after Kafka's error code
    """A position is before the start or after the end of the log.

    ``high`` may be the end that readers of committed records see.
    """

    def __init__(self, partition: TopicPartition, position: int, low: int, high: int) -> None:
        """Name the partition, the position asked for, and the log's half-open range."""
        self.partition = partition
        self.position = position
        self.low = low
        self.high = high
        super().__init__(
            f"{partition.topic}[{partition.partition}]: offset {position} is outside the log"
            f" [{low}, {high})"
        )


class Member(Protocol):
    """One stage's seat in its consumer group, and its transactional producer.

    Not thread-safe: a member belongs to one loop.
    """

    def poll(self, limit: int, max_bytes: int, timeout: float) -> Polled:
        """Wait up to ``timeout`` seconds for a first record, then take what is there.

        Takes about ``max_bytes`` of keys and values, and at most ``limit`` records, of
        committed transactions only. Keeps the member alive in its group, also while all
        is paused.

        Raises:
            OffsetOutOfRange: a position can't be read; seek, or give up.
            TopicRecreated: a topic was made anew; nothing of the new one is delivered.
            Fenced: see there.
            BusError: fatal.
        """

    @property
    def seated(self) -> bool:
        """Tell whether partitions are the member's: not from when the group takes all away.

        An assignment follows, if the member is to have any again.
        """

    def commit(self, records: Iterable[Outgoing], offsets: Mapping[TopicPartition, int]) -> None:
        """Write the records and commit the offsets (of the next record to read), or neither.

        It is by its offsets that a transaction of an older generation is told; one without
        any is guarded by the producer's epoch alone. With each goes the id of its topic.

        Raises:
            Aborted: rolled back for certain.
            Refused: rolled back, since a topic doesn't take a record.
            OutcomeUnknown: committed or not; also where a successor has taken over this
                name, which only the next `poll` knows for certain.
            TopicRecreated: a topic that the member reads was made anew; rolled back.
            Fenced: see there.
            BusError: fatal.
        """

    def renew(self) -> None:
        """Replace the producer under the same name, which ends whatever it had open.

        When it returns, `committed` tells how the transaction in doubt has ended.
        """

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Give the group's committed offsets, None where there is none; waits for open ones.

        Raises:
            TopicRecreated: an offset belongs to an earlier topic of the same name. One that was
                set without a topic's id is trusted.
            BusError: no answer in time.
        """

    def positions(self) -> dict[TopicPartition, int]:
        """Give the offset that is read next, of each partition that was sought.

        It is past everything that was delivered and past what never is: the markers of
        transactions, and aborted records. Everything before it is a record that was delivered,
        or none. After a seek it is what was sought, until something has been read from there.
        """

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read an owned partition from ``offset`` on; what was fetched before is dropped."""

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop delivery; the positions stay."""

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Start delivery."""

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """Give the log's start, and the end that readers of committed records see."""

    def lag(self) -> dict[TopicPartition, int]:
        """Give how many records each partition is behind, without asking anybody.

        Of one that is fetched from, as the last fetch told. Of all others that have a position,
        or a committed offset that was asked for, it is found out within seconds.
        """

    def close(self, *, leave: bool = False) -> None:
        """Give up the seat within a bounded time; ``leave``: for good, not for a restart."""

    def __enter__(self) -> Self:
        """Return the member."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""


class Reader(Protocol):
    """Reads committed records beside a group, with no seat in it. Belongs to one thread."""

    def start(self, partition: TopicPartition, offset: int) -> None:
        """Deliver a partition from ``offset`` on; what was fetched of it before is dropped.

        Cheap for one that runs already, and begins at once: what waits in the log is there within
        about a tenth of a second. From its first start on, a topic is the one that it is then.

        Raises:
            ValueError: it is of a topic that the reader was not made for.
            BusError: the topic does not exist, or see there.
        """

    def stop(self, partition: TopicPartition) -> None:
        """Deliver nothing of a partition any more.

        Raises:
            BusError: see there.
        """

    def read(self, limit: int, max_bytes: int, timeout: float) -> Sequence[Record]:
        """Wait up to ``timeout`` seconds for a first record, then take what is there.

        Takes at most ``limit`` records, and about ``max_bytes`` of keys and values.

        A partition's records come in order, from where it was started, and none is left out: its
        position moves only past what is handed out. What is wrong with one partition takes nothing
        from the others: it is raised by a call that hands out nothing, one partition at a time, and
        again until that partition is started anew or stopped.

        Raises:
            OffsetOutOfRange: a position can't be read; start elsewhere, or stop.
            PartitionUnreadable: the log has a record there that can't be read.
            TopicRecreated: a topic was made anew; nothing of the new one is delivered.
            BusError: the bus can't be read from.
        """

    def position(self, partition: TopicPartition) -> int | None:
        """Give the offset that is read next of a partition; None if it is not started.

        It is past everything that was delivered and past what never is: the markers of
        transactions, and aborted records. After a start it is what was asked for, until something
        has been read from there.
        """

    def end(self, partition: TopicPartition) -> int | None:
        """Give where the committed records end, without asking anybody; None if not known.

        Of a partition that is fetched from it is known as the last fetch told; while records wait
        to be read, those of open transactions may count. Of another it is found out within seconds
        of the first question. Where nothing but markers is left it may be the position.
        """

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Give the group's committed offsets, None where there is none.

        Raises:
            BusError: no answer in time.
        """

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """Give the log's start, and the end that readers of committed records see.

        Raises:
            BusError: no answer in time.
        """

    def close(self) -> None:
        """Let go of the connection, within a bounded time."""


class Bus(Protocol):
    """A log: where topics are, and members join."""

    def partitions(self, topics: Iterable[str]) -> dict[str, int | None]:
        """Give the partition count of each topic, None if it does not exist."""

    def identity(self, topic: str) -> str:
        """Tell this topic from a later one of the same name; state is bound to it."""

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        """Delete the records before an offset, which is at most where committed ones end.

        May be called from another thread than the members'; the in-process log has one only.

        Raises:
            BusError: refused, or not answered in time; nothing, or all of it, is deleted.
        """

    def reader(self, group: str, topics: Collection[str]) -> Reader:
        """Read some topics beside a group, which takes no notice."""

    def join(
        self,
        group: str,
        topics: Sequence[str],
        instance: str,
        *,
        compress: bool = True,
        of: str | None = None,
    ) -> Member:
        """Take a seat in a group; equal partition numbers of all topics go to one member.

        ``instance`` is the member's stable name: whoever joins the group under it later
        takes over the seat and fences the one before. It names the transactions too.
        ``compress``: whether what it will write is worth it.

        ``of``: the topic, of one partition, whose offsets are committed for ``topics``, which
        then only say who owns which number. The id of ``of`` goes with them, and that one made
        anew is what `poll`, `commit` and `committed` raise TopicRecreated for, as for ``topics``.
        The member reads nothing of it, and `lag` knows nothing of what was committed.

        Raises:
            BusError: the bus can't be reached within the bus's own deadline.
        """
