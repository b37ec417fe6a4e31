"""Who reads along, as a committed reader, while things break."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tests.support.checker import History, Sighting, frame_ranges, sightings
from worker.bus.memory import MemoryBus
from worker.bus.port import Record, TopicPartition
from worker.topology import Topology
from worker.wire import hand_over

__all__ = ["Auditor"]


class Auditor:
    """Notes what is on the outputs after every step, and keeps the log of fingerprints.

    Attributes:
        seen: by kind of output, in order of arrival.
        fingerprints: all frames of the log, also what was deleted from it since.
        hand_overs: the offsets in it at which a generation of the index took over.
    """

    def __init__(self, bus: MemoryBus, topology: Topology) -> None:
        """Begin at the start of all topics."""
        self._bus = bus
        self._topology = topology
        self._positions: dict[TopicPartition, int] = defaultdict(int)
        self.seen: dict[str, list[Sighting]] = {"unique": [], "duplicate": [], "rejected": []}
        self.fingerprints: list[Record] = []
        self.hand_overs: dict[int, int] = {}

    def look(self) -> None:
        """Read what is new."""
        for kind, seen in self.seen.items():
            topic = getattr(self._topology, kind)
            for number in range(self._topology.layout.partitions):
                seen.extend(sightings(self._new(TopicPartition(topic, number))))
        for record in self._new(self._topology.order):
            generation = hand_over(record.value, self._topology.layout.id)
            if generation is None:
                self.fingerprints.append(record)
            else:
                self.hand_overs[generation] = record.offset

    def history(self, inputs: Sequence[Record]) -> History:
        """Give what went in, what came out as it reads now, and what was seen meanwhile."""
        topology = self._topology
        return History(
            inputs,
            self.all_of(topology.unique),
            self.all_of(topology.duplicate),
            self.all_of(topology.rejected),
            seen=self.seen,
            frames=frame_ranges(self.fingerprints, topology.layout.id),
            parameters=topology.layout.parameters,
        )

    def all_of(self, topic: str) -> list[Record]:
        """Read a topic from start to end, partition by partition."""
        partitions = self._bus.partitions([topic])[topic] or 0
        return [r for n in range(partitions) for r in self._bus.read(topic, n, 0, 1 << 30)]

    def _new(self, place: TopicPartition) -> list[Record]:
        records = self._bus.read(*place, self._positions[place], 1 << 30)
        if records:
            self._positions[place] = records[-1].offset + 1
        return records
