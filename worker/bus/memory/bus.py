"""The in-process log: topics, groups and transactions with Kafka's semantics."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from worker.bus import BusError, Outgoing, Queued, Record, TopicPartition
from worker.bus.memory.coordinator import Coordinator, Identity
from worker.bus.memory.member import MemoryMember
from worker.bus.memory.reader import MemoryReader
from worker.bus.memory.topics import Topics
from worker.bus.memory.transaction import Faults, Transaction, no_faults
from worker.bus.memory.writer import MemoryWriter


def wall_clock() -> int:
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class MemoryBus:
    """A `worker.bus.port.Bus` inside this process, for one thread.

    It gives the guarantees that Kafka gives to read-committed readers, transactional producers
    and static members of groups; see ``tests/contract``. It is deterministic: it uses no threads
    and no randomness, and its only time is the given clock. Two things are simpler than in a
    cluster. A rebalance completes at once, so members see it in their next poll. And nothing
    happens by itself: no session ends, and nothing is deleted in the background.

    Attributes:
        faults: the hook for crash-point tests; may be set at any time.
        silent_seconds: see the port; a test may set it.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], int] = wall_clock,
        trim_consumed: bool = False,
        faults: Faults = no_faults,
    ) -> None:
        """Create an empty log.

        Args:
            clock: returns the milliseconds since the epoch that stamp records.
            trim_consumed: drop records as soon as every group with a committed offset on
                their partition is past them, so that memory only holds records in progress.
                Partitions without such a group are kept. A group that starts later, or
                seeks back, won't find the dropped records. For a log that is read under
                seats (see `join`), all seats count.
            faults: see `Faults`.
        """
        self.faults = faults
        self.silent_seconds = 0.0
        self._deletions = 0
        self._topics = Topics(clock)
        self._coordinator = Coordinator(self._topics, trim_consumed=trim_consumed)

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
            partitions: the number of partitions.
            log_append_time: stamp all records with the clock, even if they carry a time.
            first_offset: where the log begins, for all partitions or each. A run that continues
                an earlier one passes that one's ends.
            identity: what `identity` returns; by default the topic's name, or a new identity if
                an earlier topic had that one. A run that continues with kept state passes the
                topic's earlier identity.
            max_bytes: the largest size of a member's record: key, headers and value.

        Raises:
            BusError: the topic exists.
            ValueError: no partition, a negative offset, or not one offset for each partition.
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
        """Delete a topic, and all groups' offsets of it.

        Raises:
            BusError: the topic doesn't exist.
        """
        self._coordinator.check_thread()
        self._topics.delete(name)
        self._coordinator.drop(name)
        self._deletions += 1

    def queued(self) -> Mapping[str, Queued]:
        """See the port; there are no queues."""
        return {}

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

    def log_reader(
        self,
        group: str,
        topics: Collection[str],
        *,
        single: bool = False,  # noqa: ARG002 -- it has no batches
    ) -> MemoryReader:
        """See the port."""
        self._coordinator.check_thread()
        return MemoryReader(group, topics, self._topics, self._coordinator)

    def log_writer(self, name: str, topic: str) -> MemoryWriter:
        """See the port.

        Raises:
            BusError: the topic doesn't exist.
        """
        self.identity(topic)
        return MemoryWriter(name, self._topics, self._coordinator, lambda: self.faults)

    def join(
        self,
        group: str,
        topics: Sequence[str],
        instance: str,
        *,
        compress: bool = True,  # noqa: ARG002 -- part of the port
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
                    f"group {group} can't read {topic}: the topic does not exist; create it first"
                )
        return MemoryMember(
            Identity(group, instance),
            tuple(sorted(set(topics))),
            self._topics,
            self._coordinator,
            lambda: self.faults,
            of=of,
        )

    def append(self, record: Outgoing) -> tuple[TopicPartition, int]:
        """Write a record outside any transaction; return its partition and offset.

        Raises:
            BusError: its topic or partition doesn't exist.
        """
        self._coordinator.check_thread()
        for log, batch in self._topics.route((record,)).items():
            return log.place, log.extend(batch, self._topics.clock())
        raise AssertionError  # unreachable: a record has a partition

    def append_many(self, records: Iterable[Outgoing]) -> None:
        """Write records outside any transaction, in order within each partition.

        Raises:
            BusError: a topic or partition doesn't exist; nothing was written.
        """
        self._coordinator.check_thread()
        now = self._topics.clock()
        for log, batch in self._topics.route(records).items():
            log.extend(batch, now)

    def begin(self, name: str) -> Transaction:
        """Open a transaction of a producer without a group.

        Aborts a transaction that a producer of the same name left open.
        """
        self._coordinator.check_thread()
        return self._coordinator.begin(Identity("", name))

    def read(self, topic: str, partition: int, offset: int, limit: int) -> list[Record]:
        """Return at most ``limit`` committed records from ``offset`` on, without a group.

        Offsets have gaps, so continue with the last record's offset plus one.

        Raises:
            OffsetOutOfRange: the offset is outside the log.
        """
        self._coordinator.check_thread()
        return self._topics.log(TopicPartition(topic, partition)).fetch(offset, limit).records

    def start_offset(self, topic: str, partition: int) -> int:
        """Return the offset of the oldest kept record."""
        return self._topics.log(TopicPartition(topic, partition)).start

    def end_offset(self, topic: str, partition: int) -> int:
        """Return the offset that the next record will get, open transactions included."""
        return self._topics.log(TopicPartition(topic, partition)).end

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        """Drop the records before an offset.

        Raises:
            OffsetOutOfRange: the offset is after the last stable offset.
        """
        self._coordinator.check_thread()
        self._topics.log(TopicPartition(topic, partition)).trim(before_offset)

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        *,
        identities: Mapping[str, str] = MappingProxyType({}),
        of: str | None = None,
    ) -> None:
        """Set a group's offsets from outside, for example where it starts.

        ``identities`` has the known identities of the topics that the offsets belong to; ``of``
        is as in `join`.

        Raises:
            BusError: the group has members, present or away; or a partition doesn't exist.
        """
        self._coordinator.check_thread()
        if not self._coordinator.group(group).empty:
            raise BusError(
                f"group {group} has members; stop them for good before you set its offsets"
            )
        for partition in offsets:
            self._topics.log(partition)
        self._coordinator.store(group, offsets, identities, of=of)

    def committed(
        self, group: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, int | None]:
        """Return a group's committed offsets: all of them, or those of these partitions."""
        offsets = self._coordinator.group(group).offsets
        return {p: offsets.get(p) for p in (offsets if partitions is None else partitions)}
