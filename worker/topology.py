"""The names of an application's topics and groups."""

from __future__ import annotations

from dataclasses import dataclass, replace

from worker.bus import TopicPartition
from worker.wire.frame import Layout

STAGES = ("fingerprint", "index", "route")


@dataclass(frozen=True, slots=True)
class Topology:
    """An application's topics and groups, and the layout of what is in them.

    ``generation`` is that of the index; a reindex makes the next one. Each has its own topics and
    group. ``log`` is the generation for which its fingerprints were made; all that are built from
    these read the same log of them.
    """

    app: str
    documents: str
    unique: str
    duplicate: str
    rejected: str
    layout: Layout
    generation: int = 0
    log: int = 0

    def reindexed(
        self, generation: int, shards: int, threshold: float, containment: float | None = None
    ) -> Topology:
        """Return the topology of another generation of the index, of the same fingerprints."""
        layout = self.layout
        parameters = replace(layout.parameters, threshold=threshold, containment=containment)
        # The id stays: it is on the frames that all generations read.
        return replace(
            self,
            generation=generation,
            layout=replace(layout, shards=shards, parameters=parameters),
        )

    def refingerprinted(self, log: int, layout: Layout) -> Topology:
        """Return the topology of other fingerprints of the same documents."""
        return replace(self, log=log, layout=layout)

    def widened(self, partitions: int) -> Topology:
        """Return the topology once so many partitions of the documents are read."""
        return replace(self, layout=self.layout.widened(partitions))

    @property
    def index(self) -> str:
        """Name the generation of the index; the names of its topics and its group begin so."""
        return f"{self.app}.g{self.generation}" if self.generation else self.app

    @property
    def signed(self) -> str:
        """Name the log of fingerprints; the names of its topic and its groups begin so."""
        return f"{self.app}.g{self.log}" if self.log else self.app

    @property
    def fingerprints(self) -> str:
        """Name the topic whose one partition is the order."""
        return f"{self.signed}.fingerprints"

    @property
    def order(self) -> TopicPartition:
        """Name that partition, which all shards read."""
        return TopicPartition(self.fingerprints, 0)

    @property
    def seats(self) -> str:
        """Name the topic with a partition per shard: whoever has one owns the shard.

        It has no records. The offsets that are committed of it are offsets in the order.
        """
        return f"{self.index}.shards"

    def log_of(self, place: TopicPartition) -> TopicPartition:
        """Return the partition to which the committed offset of an input belongs."""
        return self.order if place.topic == self.seats else place

    def matches(self, shard: int) -> str:
        """Name the topic of a shard's answers."""
        return f"{self.index}.matches-{shard}"

    @property
    def answers(self) -> list[str]:
        """Name the topics of all shards' answers."""
        return [self.matches(shard) for shard in range(self.layout.shards)]

    @property
    def redrive(self) -> str:
        """Name the topic of how far the rejected were sent again; also the writer's id."""
        return f"{self.app}.redrive"

    @property
    def forget(self) -> str:
        """Name the writer of tombstones."""
        return f"{self.app}.forget"

    @property
    def layout_log(self) -> str:
        """Name the topic of what the workers have agreed on; also the id of who writes it."""
        return f"{self.app}.layout"

    def group(self, stage: str) -> str:
        """Name a stage's consumer group."""
        own = {"index": self.index, "fingerprint": self.signed, "refingerprint": self.signed}
        return f"{own.get(stage, self.app)}.{stage}"

    def inputs(self, stage: str) -> dict[str, int]:
        """Give the topics that a stage reads, with their partition counts."""
        answers = dict.fromkeys(self.answers, self.layout.partitions)
        return {
            "fingerprint": {self.documents: self.layout.partitions},
            "index": {self.seats: self.layout.shards},
            "route": {self.documents: self.layout.partitions, **answers},
        }[stage]

    def internal(self) -> dict[str, int]:
        """Give the topics between the stages, with their partition counts."""
        answers = dict.fromkeys(self.answers, self.layout.partitions)
        return {self.fingerprints: 1, self.seats: self.layout.shards, **answers}
