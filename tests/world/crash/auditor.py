"""Who reads along, as a committed reader, while things break."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from tests.support.checker import History, Sighting, frame_ranges, sightings
from worker.bus.memory import MemoryBus
from worker.bus.port import Record, TopicPartition
from worker.topology import Topology
from worker.wire import hand_over

__all__ = ["Auditor", "Log"]


class Log(NamedTuple):
    """A log of fingerprints.

    Attributes:
        topology: one of the generations that read it.
        frames: all of the log, also what was deleted from it since.
        hand_overs: the offsets in it at which a generation of the index took over.
    """

    topology: Topology
    frames: list[Record]
    hand_overs: dict[int, int]

    def own(self) -> list[Record]:
        """Give the frames that the log did not take over from an earlier one."""
        since = self.hand_overs.get(self.topology.log) if self.topology.log else -1
        return [] if since is None else [one for one in self.frames if one.offset > since]


class Auditor:
    """Notes what is on the outputs after every step, and keeps the logs of fingerprints.

    Attributes:
        seen: by kind of output, in order of arrival.
    """

    def __init__(self, bus: MemoryBus, topology: Topology) -> None:
        """Begin at the start of all topics."""
        self._bus = bus
        self._topology = topology
        self._positions: dict[TopicPartition, int] = defaultdict(int)
        self.seen: dict[str, list[Sighting]] = {"unique": [], "duplicate": [], "rejected": []}
        self._logs: dict[str, Log] = {}
        self.follow(topology)

    def follow(self, topology: Topology) -> None:
        """Keep the log of a generation from now on, too."""
        self._logs.setdefault(topology.fingerprints, Log(topology, [], {}))

    def log(self, topology: Topology) -> Log:
        """Give the log that a generation reads."""
        return self._logs[topology.fingerprints]

    @property
    def fingerprints(self) -> list[Record]:
        """Give the frames of the first log."""
        return self.log(self._topology).frames

    @property
    def hand_overs(self) -> dict[int, int]:
        """Give where generations took over, each in the log that it reads."""
        return {
            generation: offset
            for log in self._logs.values()
            for generation, offset in log.hand_overs.items()
            if log.topology.log <= generation
        }

    def look(self) -> None:
        """Read what is new."""
        for kind, seen in self.seen.items():
            topic = getattr(self._topology, kind)
            for number in range(self._topology.layout.partitions):
                seen.extend(sightings(self._new(TopicPartition(topic, number))))
        for topology, frames, hand_overs in self._logs.values():
            for record in self._new(topology.order):
                generation = hand_over(record.value, topology.layout.id)
                if generation is None:
                    frames.append(record)
                else:
                    hand_overs[generation] = record.offset

    def history(self, inputs: Sequence[Record]) -> History:
        """Give what went in, what came out as it reads now, and what was seen meanwhile."""
        topology = self._topology
        return History(
            inputs,
            self.all_of(topology.unique),
            self.all_of(topology.duplicate),
            self.all_of(topology.rejected),
            seen=self.seen,
            frames=[
                frame._replace(number=log.topology.layout.numbered_from + frame.number)
                for log in self._logs.values()
                for frame in frame_ranges(log.own(), log.topology.layout.id)
            ],
            parameters=topology.layout.parameters,
            deletes=True,
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
