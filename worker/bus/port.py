"""What a stage's loop needs from a log: records, a seat in a group, a transaction.

Two adapters implement the port: `worker.bus.kafka` and `worker.bus.memory`. One contract
suite (``tests/contract``) runs against both: everything that the loop relies on is documented
here and tested there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from worker.bus.records import (
    NO_EPOCHS,
    AnyOutgoing,
    Claim,
    Effect,
    Polled,
    Queued,
    Record,
    TopicPartition,
)


class Member(Protocol):
    """One stage's seat in its consumer group, and its transactional producer.

    Not thread-safe: a member belongs to one loop.
    """

    def poll(self, limit: int, max_bytes: int, timeout: float) -> Polled:
        """Wait up to ``timeout`` seconds for a first record, then return what is available.

        Returns at most ``limit`` records and about ``max_bytes`` of keys and values, from
        committed transactions only. Keeps the member alive in its group, even while all
        partitions are paused.

        Raises:
            OffsetOutOfRange: a position can't be read; seek, or give up.
            LogTruncated: a log has lost its end, and grown again past a position.
            TopicRecreated: a topic was recreated; nothing of the new one is delivered.
            Fenced: see there.
            BusError: fatal.
        """

    @property
    def seated(self) -> bool:
        """Return whether the member has an assignment. False once the group has revoked it all.

        If the member gets partitions again, a poll returns a new assignment.
        """

    @property
    def waiting(self) -> bool:
        """Return whether the member waits for an assignment: its first, or one after a loss.

        False if it has all that the group has for it, even if that is nothing. A poll that
        returns an assignment ends the wait.
        """

    def commit(
        self,
        records: Iterable[AnyOutgoing],
        offsets: Mapping[TopicPartition, int],
        *,
        epochs: Mapping[TopicPartition, int] = NO_EPOCHS,
    ) -> None:
        """Write the records and commit the offsets (of the next record to read), or neither.

        The offsets carry the group's generation, so a stale transaction is refused. A transaction
        without offsets is guarded only by the producer's epoch, and needs no seat. The id of its
        topic is committed with each offset, and the leader epoch in which it was read, if the
        member has read up to there. It is told the ``epochs`` of what it doesn't read itself, as
        with ``of``. An `Offset` has its
        state committed with it; a plain number ends the state of its partition.

        Raises:
            Aborted: rolled back; see `effect`.
            Refused: rolled back, because a topic refuses a record.
            OutcomeUnknown: committed or not. Also if a successor has taken over this name,
                which only the next `poll` knows for certain.
            TopicRecreated: a topic that the member reads was recreated; rolled back.
            Fenced: see there.
            BusError: fatal.
        """

    @property
    def throttled(self) -> bool:
        """Return whether a quota has lately delayed what `commit` writes."""

    def settle(self, timeout: float) -> None:
        """Wait up to ``timeout`` seconds until another transaction can begin.

        `commit` does so itself. What is polled after the wait is in that transaction, too.
        """

    def renew(self) -> None:
        """Replace the producer under the same name, which ends its open transaction.

        Afterwards `committed` shows how the transaction in doubt ended, and `effect` whether it
        ended the same way everywhere.
        """

    def effect(self) -> Effect:
        """Return what the last `commit` has left in the log.

        Call it after `Aborted`, or after the `renew` that follows `OutcomeUnknown`: its end is
        final then. After a commit that succeeded it is empty.

        A transaction ends partition by partition. While Kafka's coordinator of transactions
        fails, some of its partitions may see a commit, and others an abort.

        Raises:
            BusError: it can't be found out.
        """

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Return the group's committed offsets, or None where there is none.

        What was committed with a state is an `Offset`. Waits for offsets in open transactions. If a
        partition is then sought at its committed offset, and its log was cut off before and has
        grown again, `poll` raises LogTruncated.

        Raises:
            TopicRecreated: an offset belongs to an earlier topic of the same name. An offset that
                was set without a topic's id is trusted.
            BusError: no answer in time.
        """

    def claims(self) -> Mapping[TopicPartition, Claim]:
        """Return what is known to be committed of each partition, where the epoch is known."""

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset to read of each partition that was sought.

        It is past everything that was delivered and everything that never is: transaction markers
        and aborted records. Every record before it was delivered. After a seek it is the offset
        that was sought, until something has been read from there.
        """

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read an owned partition from ``offset`` on; drop what was fetched before."""

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop delivery; keep the positions."""

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Start delivery."""

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the log's start and its last stable offset."""

    def lag(self) -> dict[TopicPartition, int]:
        """Return how many records each partition is behind, without a request.

        For a partition that is being fetched, this is as of the last fetch. For any other with a
        position, or with a committed offset that was looked up, it is known within seconds.
        """

    def subscribe(self, topics: Sequence[str]) -> None:
        """Read these topics from now on, in the same seat; a poll then returns an assignment.

        Until then, what was assigned before may still be delivered, but not committed. Members
        of a group may read different topics for a while: then the numbers that one member owns
        may differ from topic to topic. A member with ``of`` can't change what it reads.
        """

    def close(self, *, leave: bool = False) -> None:
        """Give up the seat within a bounded time; with ``leave`` for good, not for a restart."""


class LogReader(Protocol):
    """Reads committed records outside a group, without a seat in it. Belongs to one thread."""

    def start(self, partition: TopicPartition, offset: int, claim: Claim | None = None) -> None:
        """Deliver a partition from ``offset`` on; drop what was fetched of it before.

        This is cheap for a partition that is already started. Waiting records arrive within about
        a tenth of a second. The first start fixes the topic's id. With a ``claim``, `read` raises
        LogTruncated if the log contradicts it.

        Raises:
            ValueError: the reader was not made for this topic.
            BusError: the topic does not exist, or see there.
        """

    def stop(self, partition: TopicPartition) -> None:
        """Stop the delivery of a partition.

        Raises:
            BusError: see there.
        """

    def read(self, limit: int, max_bytes: int, timeout: float) -> Sequence[Record]:
        """Wait up to ``timeout`` seconds for a first record, then return what is available.

        Returns at most ``limit`` records and about ``max_bytes`` of keys and values.

        A partition's records come in order, from where it was started, and none is left out: its
        position moves only past records that were delivered. An error of one partition costs the
        others nothing: it is raised by a call that delivers no records, one partition at a time,
        and again until that partition is stopped or started elsewhere.

        Raises:
            OffsetOutOfRange: a position can't be read; start elsewhere, or stop.
            PartitionUnreadable: the record at the position can't be read.
            LogTruncated: a log has lost its end, and grown again; start where it was cut off.
            TopicRecreated: a topic was recreated; nothing of the new one is delivered.
            BusError: the bus can't be read from.
        """

    def position(self, partition: TopicPartition) -> int | None:
        """Return the next offset to read of a partition; None if it is not started.

        It is past everything that was delivered and everything that never is: transaction markers
        and aborted records. After a start it is the offset that was requested, until something has
        been read from there.
        """

    def epoch(self, partition: TopicPartition) -> int | None:
        """Return the leader epoch of the position; None if nothing is known of it."""

    def end(self, partition: TopicPartition) -> int | None:
        """Return the end of the committed records, without a request; None if it is not known.

        For a partition that is being fetched, this is as of the last fetch; while records wait to
        be read, it may count records of open transactions. For any other it is known within
        seconds of the first call. If only markers are left, it may be the position.
        """

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Return the group's committed offsets, or None where there is none.

        Raises:
            BusError: no answer in time.
        """

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the log's start and its last stable offset.

        Raises:
            BusError: no answer in time.
        """

    def close(self) -> None:
        """Close the connection within a bounded time."""


class LogWriter(Protocol):
    """Writes in transactions under a name, outside all groups. Belongs to one thread.

    Only the writer that called `renew` last under a name can write under it. So the records that
    the log then holds under that name change only when this writer commits. Read them after each
    `renew`: another writer may have held the name in between.
    """

    def renew(self) -> None:
        """Take over the name: end its open transaction, and fence its previous writer.

        Raises:
            BusError: not done within the bus's own deadline.
        """

    def effect(self) -> Effect:
        """Return what the last `commit` has left in the log; see `Member.effect`.

        Raises:
            BusError: it can't be found out.
        """

    def commit(
        self,
        records: Iterable[AnyOutgoing],
        offsets: Mapping[str, Mapping[TopicPartition, int]] = MappingProxyType({}),
    ) -> dict[TopicPartition, int | None]:
        """Write the records, or none of them; return the last one's offset in each partition.

        An offset is None if the log did not say where it wrote the record. ``offsets`` are
        committed with the records, by group, whether the group has members or not. So they must be
        of partitions that no member commits.

        After `Aborted`, `Refused` and `OutcomeUnknown`, `renew` must come before the next commit.

        Raises:
            Aborted: rolled back; see `effect`.
            Refused: rolled back, because a topic refuses a record.
            OutcomeUnknown: committed or not.
            Fenced: another writer has taken over the name, or this one was stalled for longer than
                a transaction may last. The log shows whether this transaction was committed.
            BusError: fatal.
        """

    def close(self) -> None:
        """Close the connection; an open transaction ends with the next `renew` or a timeout."""


class Bus(Protocol):
    """A log with its topics and groups."""

    @property
    def silent_seconds(self) -> float:
        """Return for how long no broker has answered, by requests that a bus with members sends."""

    def queued(self) -> Mapping[str, Queued]:
        """Return what clients have in their queues, if the bus knows; from any thread.

        ``fetched`` is of all consumers and some seconds old. ``produced`` is what the last
        transactions of all producers have put there.
        """

    def partitions(self, topics: Iterable[str]) -> dict[str, int | None]:
        """Return the partition count of each topic, None if it does not exist."""

    def identity(self, topic: str) -> str:
        """Return the id that distinguishes this topic from later ones of the same name."""

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        """Delete the records before an offset, which is at most the last stable offset.

        May be called from a thread other than the members', except on the in-process log.

        Raises:
            BusError: refused, or not answered in time; all of it was deleted, or nothing.
        """

    def log_reader(self, group: str, topics: Collection[str], *, single: bool = False) -> LogReader:
        """Return a reader of some topics outside a group, which does not notice it.

        ``single``: it fetches one batch of a partition, and the next one when it is started there,
        or some 20 ms after that one was read. A log that is not divided into batches ignores it.
        """

    def log_writer(self, name: str, topic: str) -> LogWriter:
        """Return a writer under a name; ``topic`` is one that it writes to.

        It takes over the name with its first `LogWriter.renew`.
        """

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

        ``instance`` is the member's stable name: a member that joins the group under it later
        takes over the seat and fences the earlier one. It also names the transactions.
        ``compress``: whether the member's records are worth compressing.

        ``of``: a topic with one partition, whose offsets are committed for ``topics``. These then
        only say who owns which number. The id of ``of`` and its leader epoch are committed with
        the offsets. If ``of``
        or one of ``topics`` is recreated, `poll`, `commit` and `committed` raise TopicRecreated.
        The member does not read ``of``, and `lag` does not know the committed offsets.

        Raises:
            BusError: the bus can't be reached within the bus's own deadline.
        """
