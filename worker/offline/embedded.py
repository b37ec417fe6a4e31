"""All stages on the in-process log, in one thread: for the demo, offline runs and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from worker.app import Application, Environment
from worker.bus import TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.loop.loop import Loop
from worker.metrics.metrics import Metrics
from worker.settings.model import Settings
from worker.topology import STAGES, Topology


def create_topics(
    bus: MemoryBus,
    topology: Topology,
    *,
    first_offsets: Mapping[str, int | Sequence[int]] | None = None,
) -> None:
    """Create all topics, and commit every group's start: 0, or ``first_offsets`` by topic.

    With persistent state, ``documents`` and ``fingerprints`` continue where their readers stopped
    (see `Embedded.reached`); the answers and outputs were read to the end, and may start at 0.
    """
    first = first_offsets or {}
    outputs = (topology.unique, topology.duplicate, topology.rejected)
    counts = {topology.documents: topology.layout.partitions, **topology.internal()}
    counts |= dict.fromkeys(outputs, topology.layout.partitions)
    for topic, partitions in counts.items():
        bus.create_topic(
            topic,
            partitions,
            log_append_time=topic == topology.fingerprints,
            first_offset=first.get(topic, 0),
        )
    for stage in STAGES:
        offsets = {
            partition: bus.start_offset(*topology.log_of(partition))
            for topic, partitions in topology.inputs(stage).items()
            for partition in (TopicPartition(topic, number) for number in range(partitions))
        }
        of = topology.fingerprints if stage == "index" else None
        bus.commit_offsets(topology.group(stage), offsets, of=of)


class Embedded:
    """Runs all stages until nothing is left to do."""

    def __init__(
        self,
        settings: Settings,
        topology: Topology,
        bus: MemoryBus,
        state_dir: Path,
        *,
        metrics: Metrics | None = None,
    ) -> None:
        """Seat every stage; topics and committed offsets must exist."""
        self._bus = bus
        environment = Environment(metrics or Metrics())
        self.application = Application(settings, topology, bus, state_dir, environment=environment)
        self.loops: list[Loop] = [self.application.loop(name, "embedded") for name in STAGES]

    def run_until_idle(self) -> None:
        """Step all stages until none has work left."""
        busy = True
        while busy:
            busy = False
            for loop in self.loops:
                loop.step(0.0)
                while loop.busy:
                    busy = True
                    loop.step(0.0)

    def reached(self) -> dict[str, list[int]]:
        """Return the offsets that the readers have reached, by topic and partition.

        It has only the topics at which a later run continues: the documents, their order, the
        shards.
        """
        topology = self.application.topology
        places = {
            topology.documents: ("fingerprint", topology.layout.partitions),
            topology.seats: ("index", topology.layout.shards),
        }
        found = {
            topic: [
                self._bus.committed(topology.group(stage))[TopicPartition(topic, number)] or 0
                for number in range(partitions)
            ]
            for topic, (stage, partitions) in places.items()
        }
        return {**found, topology.fingerprints: [min(found[topology.seats])]}

    def close(self) -> None:
        """Close all stages, even if one of them fails to close."""
        with ExitStack() as stack:
            for loop in self.loops:
                stack.callback(loop.close)
