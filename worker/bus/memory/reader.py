"""Reads the in-process log outside a group."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from worker.bus import Claim, Record, TopicPartition
from worker.bus.memory.coordinator import Coordinator
from worker.bus.memory.topics import Topics


class MemoryReader:
    """See `worker.bus.port.LogReader`."""

    def __init__(
        self, group: str, names: Collection[str], topics: Topics, coordinator: Coordinator
    ) -> None:
        """Prepare to read the topics of these names."""
        self._group = group
        self._names = frozenset(names)
        self._identities: dict[str, str] = {}
        self._topics = topics
        self._coordinator = coordinator
        self._positions: dict[TopicPartition, int] = {}
        self._claims: dict[TopicPartition, Claim | None] = {}

    def start(self, partition: TopicPartition, offset: int, claim: Claim | None = None) -> None:
        """See the port."""
        topic = partition.topic
        if topic not in self._names:
            raise ValueError(f"{topic} is not one of {sorted(self._names)}")
        self._topics.log(partition)
        self._identities.setdefault(topic, self._topics.identities[topic])
        self._positions[partition] = offset
        self._claims[partition] = claim

    def stop(self, partition: TopicPartition) -> None:
        """See the port."""
        self._positions.pop(partition, None)
        self._claims.pop(partition, None)

    def read(
        self,
        limit: int,
        max_bytes: int,
        timeout: float,  # noqa: ARG002 -- it never waits
    ) -> list[Record]:
        """See the port. Never waits: in one thread, nothing can arrive meanwhile."""
        self._coordinator.check_thread()
        self._topics.check(self._identities)
        there = {
            partition: position
            for partition, position in self._positions.items()
            if self._topics.count(partition.topic) is not None
        }
        for partition, position in there.items():
            log = self._topics.log(partition)
            log.confirm(self._claims[partition])
            log.check(position)
        records: list[Record] = []
        for partition, position in there.items():
            if limit < 1 or max_bytes < 1:
                break
            fetched = self._topics.log(partition).fetch(position, limit, max_bytes)
            self._positions[partition] = fetched.position
            self._claims[partition] = Claim(fetched.position, self._topics.log(partition).epoch)
            limit -= len(fetched.records)
            max_bytes -= fetched.size
            records += fetched.records
        return records

    def position(self, partition: TopicPartition) -> int | None:
        """See the port."""
        return self._positions.get(partition)

    def epoch(self, partition: TopicPartition) -> int | None:
        """See the port."""
        claim = self._claims.get(partition)
        return None if claim is None else claim.epoch

    def end(self, partition: TopicPartition) -> int | None:
        """See the port. Control records count until the position has passed them."""
        if self._topics.count(partition.topic) is None:
            return None
        return self._topics.log(partition).stable

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """See the port."""
        offsets = self._coordinator.group(self._group).offsets
        return {partition: offsets.get(partition) for partition in partitions}

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """See the port."""
        log = self._topics.log(partition)
        return log.start, log.stable

    def close(self) -> None:
        """See the port."""
        self._positions.clear()
