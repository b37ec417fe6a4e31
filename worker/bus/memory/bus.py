"""The in-process log: topics, groups and transactions with Kafka's semantics."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from worker.bus.memory.coordinator import Coordinator, Identity
from worker.bus.memory.expiry import GroupProtocol, OffsetExpiry
from worker.bus.memory.faults import Faults, no_faults
from worker.bus.memory.member import MemoryMember
from worker.bus.memory.reader import MemoryReader
from worker.bus.memory.retention import Retention
from worker.bus.memory.topics import Topics
from worker.bus.memory.transaction import Transaction
from worker.bus.port import BusError, Outgoing, Record, TopicPartition

__all__ = ["MemoryBus"]


def _wall_clock() -> int:
    """Give milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class MemoryBus:
    """A `worker.bus.port.Bus` inside this process, for one thread.

    What Kafka promises to committed readers, transactional producers and static members
    of groups holds here, too; see ``tests/contract``. It is deterministic: no threads, no
    randomness, no time but the clock it is given. Two things are simpler than in a
    cluster. A rebalance completes at once, so members see it in their next poll. And
    nothing happens by itself: `evict` stands for a process that stays away until its
    session ends, and `pass_time` for what brokers delete in the background.

    Attributes:
        faults: the hook for crash-point tests; may be set at any time.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], int] = _wall_clock,
        trim_consumed: bool = False,
        offsets_retention_ms: int | None = None,
        group_protocol: GroupProtocol = "classic",
        faults: Faults = no_faults,
    ) -> None:
        """Make an empty log.

        Args:
            clock: gives the milliseconds since the epoch that records are stamped with.
            trim_consumed: drop records as soon as every group that has a committed
                offset on their partition is past them, so that memory holds what is
                under way and no more. Partitions without such a group are kept. A
                group that starts later, or goes back, won't find what is gone. Of a log
                that is read under seats (see `join`), all seats count.
            offsets_retention_ms: when offsets of groups without members expire, if ever;
                see `OffsetExpiry`.
            group_protocol: by the rules of which protocol they do.
            faults: see `Faults`.
        """
        self.faults = faults
        self._deletions = 0
        self._topics = Topics(clock)
        expiry = OffsetExpiry(clock, offsets_retention_ms, group_protocol)
        self._coordinator = Coordinator(self._topics, expiry, trim_consumed=trim_consumed)

    def create_topic(  # noqa: PLR0913 -- each with a default
        self,
        name: str,
        partitions: int,
        *,
        log_append_time: bool = False,
        first_offset: int | Sequence[int] = 0,
        identity: str | None = None,
        max_bytes: int | None = None,
    ) -> None:
        """Create a topic.

        Args:
            name: its name.
            partitions: how many it has.
            log_append_time: stamp all records with the clock, whatever time they carry.
            first_offset: where the log begins, for all partitions or each: it goes on
                where an earlier run's ended.
            identity: what the method of this name gives, the topic's name by default, or one
                that no topic before had. A run that goes on with kept state creates the topic
                with the identity it had.
            max_bytes: what a record of a member may have of key, headers and value.

        Raises:
            BusError: it exists.
            ValueError: no partition, a negative offset, or not one for each.
        """
        self._coordinator.check_thread()
        offsets = (
            first_offset if isinstance(first_offset, Sequence) else [first_offset] * partitions
        )
        if len(offsets) != partitions:
            raise ValueError(
                f"topic {name}: {len(offsets)} first offsets for {partitions} partitions"
            )
        if identity is None:
            identity = f"{name}#{self._deletions}" if name in self._topics.identities else name
        self._topics.create(
            name,
            offsets,
            log_append_time=log_append_time,
            identity=identity,
            max_bytes=max_bytes,
        )

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and what all groups have committed of it.

        Raises:
            BusError: it doesn't exist.
        """
        self._coordinator.check_thread()
        self._topics.delete(name)
        self._coordinator.forget(name)
        self._deletions += 1

    def partitions(self, topics: Iterable[str]) -> dict[str, int | None]:
        """See the port."""
        return {topic: self._topics.count(topic) for topic in topics}

    def identity(self, topic: str) -> str:
        """See the port.

        Raises:
            BusError: the topic doesn't exist.
        """
        if self._topics.count(topic) is None:
            raise BusError(f"topic {topic} does not exist; create it first")
        return self._topics.identities[topic]

    def reader(self, group: str, topics: Collection[str]) -> MemoryReader:
        """See the port."""
        self._coordinator.check_thread()
        return MemoryReader(group, topics, self._topics, self._coordinator)

    def join(
        self,
        group: str,
        topics: Sequence[str],
        instance: str,
        *,
        compress: bool = True,  # noqa: ARG002 -- port
        of: str | None = None,
    ) -> MemoryMember:
        """See the port.

        Raises:
            BusError: a topic doesn't exist.
        """
        self._coordinator.check_thread()
        for topic in (*topics, of) if of is not None else topics:
            if self._topics.count(topic) is None:
                raise BusError(
                    f"group {group} can't read {topic}: the topic does not exist; create it"
                )
        return MemoryMember(
            Identity(group, instance),
            tuple(sorted(set(topics))),
            self._topics,
            self._coordinator,
            lambda: self.faults,
            of=of,
        )

    def evict(self, group: str, instance: str) -> None:
        """Let a member's session and transaction time out.

        Its seat is given up, and what it had open is aborted. If it is alive after all,
        it can't commit any more, and takes a seat again with its next poll.
        """
        self._coordinator.check_thread()
        self._coordinator.abort_open(Identity(group, instance))
        self._coordinator.group(group).leave(instance)

    def append(self, record: Outgoing) -> tuple[TopicPartition, int]:
        """Write a record outside of any transaction; give its place.

        Raises:
            BusError: its topic or partition doesn't exist.
        """
        self._coordinator.check_thread()
        for log, batch in self._topics.route((record,)).items():
            return log.place, log.extend(batch, self._topics.clock())
        raise AssertionError  # a record has a place

    def append_many(self, records: Iterable[Outgoing]) -> None:
        """Write records outside of any transaction, in order within each partition.

        Raises:
            BusError: a topic or partition doesn't exist; nothing was written.
        """
        self._coordinator.check_thread()
        now = self._topics.clock()
        for log, batch in self._topics.route(records).items():
            log.extend(batch, now)

    def begin(self, name: str) -> Transaction:
        """Open a transaction of a producer without a group.

        One that a producer of the same name left open is aborted.
        """
        self._coordinator.check_thread()
        return self._coordinator.begin(Identity("", name))

    def read(self, topic: str, partition: int, offset: int, limit: int) -> list[Record]:
        """Read committed records without a group: at most ``limit``, from ``offset`` on.

        Offsets have gaps, so go on from the last record's offset plus one.

        Raises:
            OffsetOutOfRange: the offset is outside the log.
        """
        self._coordinator.check_thread()
        return self._topics.log(TopicPartition(topic, partition)).fetch(offset, limit).records

    def start_offset(self, topic: str, partition: int) -> int:
        """Give the offset of the oldest record that is kept."""
        return self._topics.log(TopicPartition(topic, partition)).start

    def end_offset(self, topic: str, partition: int) -> int:
        """Give the offset that the next record will get, whatever is still open."""
        return self._topics.log(TopicPartition(topic, partition)).end

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        """Drop the records before an offset.

        Raises:
            OffsetOutOfRange: it is after the last stable offset.
        """
        self._coordinator.check_thread()
        self._topics.log(TopicPartition(topic, partition)).trim(before_offset)

    def retain(self, topic: str, retention: Retention | None) -> None:
        """Set for how long a topic keeps records; None, as at first: for ever.

        What it holds already becomes one segment; see `Segments`.

        Raises:
            BusError: the topic doesn't exist.
        """
        self._coordinator.check_thread()
        self._topics.retain(topic, retention)

    def pass_time(self) -> None:
        """Do what brokers do as time passes: call it whenever the clock has moved far.

        Segments that have expired are deleted (see `Segments`), and so are the offsets that
        groups have left behind (see `OffsetExpiry`).
        """
        self._coordinator.check_thread()
        self._topics.expire()
        self._coordinator.expire()

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        *,
        identities: Mapping[str, str] = MappingProxyType({}),
        of: str | None = None,
    ) -> None:
        """Set a group's offsets from outside: where it starts, say.

        ``identities`` are of the topics that the offsets belong to, as far as is known; ``of`` is
        that of a member which joins so.

        Raises:
            BusError: the group has members, present or away; or no such partition.
        """
        self._coordinator.check_thread()
        if not self._coordinator.group(group).empty:
            raise BusError(
                f"group {group} has members; stop them for good before you move its offsets"
            )
        for partition in offsets:
            self._topics.log(partition)
        self._coordinator.store(group, offsets, identities, of=of)

    def committed(
        self, group: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, int | None]:
        """Give a group's committed offsets: all there are, or of these partitions."""
        offsets = self._coordinator.group(group).offsets
        return {p: offsets.get(p) for p in (offsets if partitions is None else partitions)}
