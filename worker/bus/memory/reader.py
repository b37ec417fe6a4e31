"""Reading the in-process log beside a group."""

from __future__ import annotations

from collections.abc import Iterable

from worker.bus.memory.coordinator import Coordinator
from worker.bus.memory.topics import Topics
from worker.bus.port import Record, TopicPartition

__all__ = ["MemoryReader"]


class MemoryReader:
    """See `worker.bus.port.Reader`."""

    def __init__(self, group: str, topics: Topics, coordinator: Coordinator) -> None:
        """Read nothing yet."""
        self._group = group
        self._topics = topics
        self._coordinator = coordinator
        self._positions: dict[TopicPartition, int] = {}

    def start(self, partition: TopicPartition, offset: int) -> None:
        """See the port."""
        self._topics.log(partition)
        self._positions[partition] = offset

    def stop(self, partition: TopicPartition) -> None:
        """See the port."""
        self._positions.pop(partition, None)

    def read(self, limit: int, timeout: float) -> list[Record]:  # noqa: ARG002 -- nothing comes
        """See the port. Never waits: in one thread, nothing could come meanwhile."""
        self._coordinator.check_thread()
        for partition, position in self._positions.items():
            self._topics.log(partition).check(position)
        records: list[Record] = []
        for partition, position in self._positions.items():
            if len(records) < limit:
                fetched = self._topics.log(partition).fetch(position, limit - len(records))
                self._positions[partition] = fetched.position
                records += fetched.records
        return records

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
