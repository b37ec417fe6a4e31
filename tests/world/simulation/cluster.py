"""The in-process log as an operator's commands see a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from worker.admin.agreement import agreed, dump
from worker.admin.cluster import Cluster, TopicState
from worker.bus import TopicPartition
from worker.bus.kafka.groups import Committed
from worker.bus.memory.bus import MemoryBus
from worker.settings.model import Settings
from worker.topology import Topology


class MemoryCluster(Cluster):
    """Answers what `worker.admin.checks.inspect` asks, so that the very checks of a start run.

    Topics show no settings, and no setting is checked: retention is what the tests vary. What
    the workers agree on is recorded.
    """

    def __init__(self, bus: MemoryBus, settings: Settings, topology: Topology) -> None:
        """Look at this log; no client is made."""
        self._bus = bus
        facts = agreed(settings, topology)
        self._records: dict[str, dict[bytes | None, bytes]] = {
            topology.layout_log: {b"layout": dump(facts)}
        }

    def counts(self) -> tuple[int, dict[str, tuple[int, int]]]:
        """See `Cluster`; of the topics that have records here."""
        return 1, dict.fromkeys(self._records, (1, 1))

    def topics(
        self, names: Iterable[str], optional: Collection[str] = ()
    ) -> tuple[int, dict[str, TopicState | None]]:
        """See `Cluster`."""
        del optional
        counts = {**self._bus.partitions(names), **dict.fromkeys(self._records, 1)}
        return 1, {
            name: TopicState(count, 1, {}) if count is not None else None
            for name, count in counts.items()
        }

    def last_records(self, topic: str) -> dict[bytes | None, bytes]:
        """See `Cluster`."""
        return dict(self._records[topic])

    def committed(
        self, asked: Mapping[str, Iterable[TopicPartition]]
    ) -> dict[str, dict[TopicPartition, int]]:
        """See `Cluster`."""
        return {
            group: {
                place: offset
                for place, offset in self._bus.committed(group, places).items()
                if offset is not None
            }
            for group, places in asked.items()
        }

    def annotated(
        self, asked: Mapping[str, Iterable[TopicPartition]]
    ) -> dict[str, dict[TopicPartition, Committed]]:
        """See `Cluster`."""
        return {
            group: {place: Committed(offset) for place, offset in places.items()}
            for group, places in self.committed(asked).items()
        }

    def ranges(
        self, counts: Mapping[str, int], *, committed: bool = True
    ) -> dict[TopicPartition, tuple[int, int]]:
        """See `Cluster`."""
        places = [
            TopicPartition(t, number) for t, count in counts.items() for number in range(count)
        ]
        reader = self._bus.log_reader("", counts)
        found = {place: reader.watermarks(place) for place in places}
        if committed:
            return found
        return {place: (low, self._bus.end_offset(*place)) for place, (low, _) in found.items()}
