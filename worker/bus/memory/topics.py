"""The topics of the log, and the way of a record to its partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from worker.bus.memory.log import PartitionLog
from worker.bus.memory.murmur2 import partition_for
from worker.bus.memory.retention import Retention
from worker.bus.port import BusError, Outgoing, TopicPartition, TopicRecreated

__all__ = ["Topics"]


class Topics:
    """All partitions, by topic and number.

    Attributes:
        identities: of all topics that there are, or were: a later one has another.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        """Take the clock (ms) that stamps records."""
        self.clock = clock
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        self._counts: dict[str, int] = {}
        self.identities: dict[str, str] = {}
        self._most: dict[str, int] = {}  # bytes that a record may have, where that is limited
        self._turn: dict[str, int] = {}  # of records with neither a partition nor a key

    def create(
        self,
        name: str,
        first_offsets: Sequence[int],
        *,
        log_append_time: bool,
        identity: str,
        max_bytes: int | None = None,
    ) -> None:
        """Make a topic with one partition per first offset.

        Raises:
            BusError: it exists.
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
            self._logs[place] = PartitionLog(place, first_offset, log_append_time=log_append_time)
        self._counts[name] = len(first_offsets)
        if max_bytes is not None:
            self._most[name] = max_bytes
        self._turn[name] = 0
        self.identities[name] = identity

    def delete(self, name: str) -> None:
        """Forget a topic and its records.

        Raises:
            BusError: it doesn't exist.
        """
        count = self._counts.pop(name, None)
        if count is None:
            raise self._unknown(name, 0)
        self._most.pop(name, None)
        for partition in range(count):
            del self._logs[TopicPartition(name, partition)]

    def retain(self, name: str, retention: Retention | None) -> None:
        """Set for how long a topic keeps records; None: for ever.

        Raises:
            BusError: the topic doesn't exist.
        """
        count = self._counts.get(name)
        if count is None:
            raise self._unknown(name, 0)
        for partition in range(count):
            self._logs[name, partition].retain(retention, self.clock())

    def expire(self) -> None:
        """Delete what has expired by now."""
        now = self.clock()
        for log in self._logs.values():
            log.expire(now)

    def check(self, identities: Mapping[str, str]) -> None:
        """Check that topics are what they were; one that is gone may come back.

        Raises:
            TopicRecreated: one is a later topic of the same name.
        """
        for topic, was in identities.items():
            now = self.identities[topic]
            if now != was:
                raise TopicRecreated(topic, was, now)

    def count(self, topic: str) -> int | None:
        """Give a topic's number of partitions, None if it does not exist."""
        return self._counts.get(topic)

    def refused(self, batch: Iterable[Outgoing]) -> list[Outgoing]:
        """Name records that are larger than their topic takes."""
        if not self._most:
            return []
        return [
            one for one in batch if one.topic in self._most and one.size > self._most[one.topic]
        ]

    def log(self, place: TopicPartition) -> PartitionLog:
        """Give a partition's log.

        Raises:
            BusError: there is none.
        """
        try:
            return self._logs[place]
        except KeyError:
            raise self._unknown(*place) from None

    def route(self, records: Iterable[Outgoing]) -> dict[PartitionLog, list[Outgoing]]:
        """Sort records by partition, in their order. Nothing is written yet.

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
        """Partition by the key, if there is one (an empty one is one), else in turn."""
        count = self._counts.get(topic)
        if count is None:
            raise self._unknown(topic, 0)
        if key is not None:
            return partition_for(key, count)
        turn = self._turn[topic]
        self._turn[topic] = (turn + 1) % count
        return turn

    def _unknown(self, topic: str, partition: int) -> BusError:
        """Say which topic or partition doesn't exist."""
        count = self._counts.get(topic)
        if count is None:
            return BusError(f"topic {topic} does not exist; create it first")
        return BusError(f"{topic}[{partition}] does not exist: the topic has {count} partitions")
