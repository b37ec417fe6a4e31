"""Who reads along, as a committed reader, and keeps what time deletes from the topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tests.support.checker.history import History, Sighting, frame_ranges, sightings
from worker.bus import LogReader, Record, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.topology import Topology
from worker.wire.codec import hand_over

_ALL: Final = 1 << 30


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


class Archive:
    """All committed records of all topics, by partition, in their order.

    Attributes:
        seen: what came to the outputs, by kind, in order of arrival.
    """

    def __init__(self, bus: MemoryBus, topology: Topology) -> None:
        """Begin where the logs begin."""
        self._bus = bus
        self._topology = topology
        kinds = {getattr(topology, kind): kind for kind in ("unique", "duplicate", "rejected")}
        self.seen: dict[str, list[Sighting]] = {kind: [] for kind in kinds.values()}
        self._kinds = kinds
        self._records: dict[TopicPartition, list[Record]] = {}
        self._next: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, LogReader] = {}
        self._logs: dict[str, Topology] = {}
        outputs = dict.fromkeys(kinds, topology.layout.partitions)
        self._add({topology.documents: topology.layout.partitions, **outputs})
        self.follow(topology)

    def follow(self, topology: Topology) -> None:
        """Keep the internal topics of a generation from now on, too."""
        self._logs.setdefault(topology.fingerprints, topology)
        self._add(topology.internal())

    def _add(self, counts: dict[str, int]) -> None:
        reader = self._bus.log_reader("", counts)
        for topic, count in counts.items():
            for place in (TopicPartition(topic, number) for number in range(count)):
                self._records.setdefault(place, [])
                self._next.setdefault(place, 0)
                self._ends.setdefault(place, reader)

    def look(self) -> None:
        """Read what is new; must be called before anything is deleted.

        Raises:
            OffsetOutOfRange: it was not, and records are missing.
        """
        for place, known in self._records.items():
            at = self._next[place]
            _, end = self._ends[place].watermarks(place)
            if end > at:
                new = self._bus.read(*place, at, _ALL)
                known.extend(new)
                self._next[place] = end  # Past control records, which time deletes, too.
                if place.topic in self._kinds:
                    self.seen[self._kinds[place.topic]].extend(sightings(new))

    def of(self, topic: str) -> list[Record]:
        """Give all of a topic, partition by partition."""
        return [r for place, records in self._records.items() if place.topic == topic
                for r in records]  # fmt: skip

    def between(self, place: TopicPartition, low: int, high: int) -> Iterator[Record]:
        """Give the records of a partition in a range of offsets."""
        return (record for record in self._records[place] if low <= record.offset < high)

    def log(self, topology: Topology) -> Log:
        """Give the log that a generation reads."""
        log = Log(self._logs[topology.fingerprints], [], {})
        for record in self._records[log.topology.order]:
            generation = hand_over(record.value, log.topology.layout.id)
            if generation is None:
                log.frames.append(record)
            else:
                log.hand_overs[generation] = record.offset
        return log

    @property
    def fingerprints(self) -> list[Record]:
        """Give the frames of the first log."""
        return self.log(self._topology).frames

    @property
    def hand_overs(self) -> dict[int, int]:
        """Give where generations took over, each in the log that it reads."""
        return {
            generation: offset
            for log in map(self.log, self._logs.values())
            for generation, offset in log.hand_overs.items()
            if log.topology.log <= generation
        }

    def history(self, inputs: Sequence[Record]) -> History:
        """Give what went in, what came out as it reads now, and what was seen meanwhile."""
        topology = self._topology
        return History(
            inputs,
            self._now(topology.unique),
            self._now(topology.duplicate),
            self._now(topology.rejected),
            seen=self.seen,
            frames=[
                frame._replace(number=log.topology.layout.numbered_from + frame.number)
                for log in map(self.log, self._logs.values())
                for frame in frame_ranges(log.own(), log.topology.layout.id)
            ],
            parameters=topology.layout.parameters,
            deletes=True,
        )

    def _now(self, topic: str) -> list[Record]:
        partitions = self._bus.partitions([topic])[topic] or 0
        return [r for n in range(partitions) for r in self._bus.read(topic, n, 0, _ALL)]
