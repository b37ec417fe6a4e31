"""Who reads along, as a committed reader, and keeps what time deletes from the topics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from worker.bus.memory import MemoryBus
from worker.bus.port import Record, TopicPartition
from worker.topology import Topology

__all__ = ["Archive"]

_ALL = 1 << 30


class Archive:
    """All committed records of all topics, by partition, in their order."""

    def __init__(self, bus: MemoryBus, topology: Topology) -> None:
        """Begin where the logs begin."""
        self._bus = bus
        outputs = (topology.unique, topology.duplicate, topology.rejected)
        counts = {topology.documents: topology.layout.partitions, **topology.internal()}
        counts |= dict.fromkeys(outputs, topology.layout.partitions)
        self._records: dict[TopicPartition, list[Record]] = {
            TopicPartition(topic, number): []
            for topic, count in counts.items()
            for number in range(count)
        }
        self._next: dict[TopicPartition, int] = defaultdict(int)
        self._ends = bus.log_reader("", counts)

    def look(self) -> None:
        """Read what is new; must be called before anything is deleted.

        Raises:
            OffsetOutOfRange: it was not, and records are missing.
        """
        for place, known in self._records.items():
            at = self._next[place]
            _, end = self._ends.watermarks(place)
            if end > at:
                known.extend(self._bus.read(*place, at, _ALL))
                self._next[place] = end  # Past control records, which time deletes, too.

    def of(self, topic: str) -> list[Record]:
        """Give all of a topic, partition by partition."""
        return [r for place, records in self._records.items() if place.topic == topic
                for r in records]  # fmt: skip

    def between(self, place: TopicPartition, low: int, high: int) -> Iterator[Record]:
        """Give the records of a partition in a range of offsets."""
        return (record for record in self._records[place] if low <= record.offset < high)
