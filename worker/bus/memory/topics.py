"""The topics of the log, and the partitioning of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from struct import unpack_from

from worker.bus import BusError, Outgoing, TopicPartition, TopicRecreated
from worker.bus.memory.log import PartitionLog
from worker.visible import counted

# MurmurHash2, by which Kafka's clients partition keyed records.
_SEED = 0x9747B28C
_M = 0x5BD1E995
_R = 24
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the hash of Kafka's Java client: 32-bit MurmurHash2 with a fixed seed, unsigned.

    >>> murmur2(b"21") - 2**32
    -973932308
    """
    length = len(data)
    whole = length & ~3
    state = (_SEED ^ length) & _MASK
    for word in unpack_from(f"<{whole >> 2}I", data):
        mixed = (word * _M) & _MASK
        mixed = ((mixed ^ (mixed >> _R)) * _M) & _MASK
        state = ((state * _M) & _MASK) ^ mixed
    if whole < length:
        state = ((state ^ int.from_bytes(data[whole:], "little")) * _M) & _MASK
    state = ((state ^ (state >> 13)) * _M) & _MASK
    return state ^ (state >> 15)


def partition_for(key: bytes, partitions: int) -> int:
    """Return the partition (of ``partitions``) of a keyed record, as Java clients choose it."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class Topics:
    """All partitions, by topic and number.

    Attributes:
        identities: of all present and past topics, by name; a recreated topic has a new one.
    """

    def __init__(self, clock: Callable[[], int], log: type[PartitionLog] = PartitionLog) -> None:
        """Take the clock (ms) that stamps records, and what keeps those of a partition."""
        self.clock = clock
        self._log = log
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        self._counts: dict[str, int] = {}
        self.identities: dict[str, str] = {}
        self._max_bytes: dict[str, int] = {}  # of a record, for topics with a limit
        self._next_partition: dict[str, int] = {}  # for records without one or a key

    def create(
        self,
        name: str,
        first_offsets: Sequence[int],
        *,
        log_append_time: bool,
        identity: str,
        max_bytes: int | None = None,
    ) -> None:
        """Create a topic with one partition per first offset.

        Raises:
            BusError: the topic exists.
            ValueError: no partition, or a negative offset.
        """
        if name in self._counts:
            raise BusError(f"topic {name} exists; use it, or choose another name")
        if not first_offsets or min(first_offsets) < 0:
            raise ValueError(
                f"topic {name}: needs a partition, and offsets from 0: {list(first_offsets)}"
            )
        for partition, first_offset in enumerate(first_offsets):
            place = TopicPartition(name, partition)
            self._logs[place] = self._log(place, first_offset, log_append_time=log_append_time)
        self._counts[name] = len(first_offsets)
        if max_bytes is not None:
            self._max_bytes[name] = max_bytes
        self._next_partition[name] = 0
        self.identities[name] = identity

    def delete(self, name: str) -> None:
        """Delete a topic and its records.

        Raises:
            BusError: the topic doesn't exist.
        """
        count = self._counts.pop(name, None)
        if count is None:
            raise self._unknown(name, 0)
        self._max_bytes.pop(name, None)
        for partition in range(count):
            del self._logs[TopicPartition(name, partition)]

    def check(self, identities: Mapping[str, str]) -> None:
        """Check that no topic was recreated; a deleted topic is not an error.

        Raises:
            TopicRecreated: a topic has another identity.
        """
        for topic, was in identities.items():
            now = self.identities[topic]
            if now != was:
                raise TopicRecreated(topic, was, now)

    def count(self, topic: str) -> int | None:
        """Return a topic's number of partitions, None if it does not exist."""
        return self._counts.get(topic)

    def refused(self, batch: Iterable[Outgoing]) -> list[Outgoing]:
        """Return the records that are larger than their topic accepts."""
        if not self._max_bytes:
            return []
        return [
            one
            for one in batch
            if one.topic in self._max_bytes and one.size > self._max_bytes[one.topic]
        ]

    def log(self, partition: TopicPartition) -> PartitionLog:
        """Return a partition's log.

        Raises:
            BusError: it doesn't exist.
        """
        try:
            return self._logs[partition]
        except KeyError:
            raise self._unknown(*partition) from None

    def route(self, records: Iterable[Outgoing]) -> dict[PartitionLog, list[Outgoing]]:
        """Group records by partition, in order. This writes nothing.

        Raises:
            BusError: a record's topic or partition doesn't exist.
        """
        logs = self._logs
        batches: dict[PartitionLog, list[Outgoing]] = {}
        for record in records:
            topic, partition, key, _, _, _ = record
            if partition is None:
                partition = self._choose(topic, key)
            log = logs.get((topic, partition))
            if log is None:
                raise self._unknown(topic, partition)
            batch = batches.get(log)
            if batch is None:
                batches[log] = [record]
            else:
                batch.append(record)
        return batches

    def _choose(self, topic: str, key: bytes | None) -> int:
        """Return the partition by the key (which may be empty), or in turn without a key."""
        count = self._counts.get(topic)
        if count is None:
            raise self._unknown(topic, 0)
        if key is not None:
            return partition_for(key, count)
        turn = self._next_partition[topic]
        self._next_partition[topic] = (turn + 1) % count
        return turn

    def _unknown(self, topic: str, partition: int) -> BusError:
        """Return the error for a topic or partition that doesn't exist."""
        count = self._counts.get(topic)
        if count is None:
            return BusError(f"topic {topic} does not exist; create it first")
        return BusError(
            f"{topic}[{partition}] does not exist: the topic has {counted(count, 'partition')}"
        )
