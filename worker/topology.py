"""The names of topics and groups, their counts, and the layout that frames are stamped with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b

from lsh import Parameters
from worker.bus import TopicPartition
from worker.settings import Settings

__all__ = ["STAGES", "Topology"]

STAGES = ("fingerprint", "index", "route")


@dataclass(frozen=True, slots=True)
class Topology:
    """An application's topics and groups; ``partitions`` is N, ``shards`` P."""

    app: str
    documents: str
    unique: str
    duplicate: str
    rejected: str
    partitions: int
    shards: int
    parameters: Parameters

    @classmethod
    def of(cls, settings: Settings, partitions: int) -> Topology:
        """Name everything after the settings."""
        topics = settings.topics
        return cls(
            app=settings.app,
            documents=topics.documents or f"{settings.app}.documents",
            unique=topics.unique or f"{settings.app}.unique",
            duplicate=topics.duplicate or f"{settings.app}.duplicate",
            rejected=topics.rejected or f"{settings.app}.rejected",
            partitions=partitions,
            shards=settings.index.shards,
            parameters=settings.parameters(),
        )

    @property
    def fingerprints(self) -> str:
        """Name the topic whose one partition is the order."""
        return f"{self.app}.fingerprints"

    @property
    def order(self) -> TopicPartition:
        """Name that partition, which all shards read."""
        return TopicPartition(self.fingerprints, 0)

    @property
    def seats(self) -> str:
        """Name the topic with a partition per shard: whoever has one owns the shard.

        It has no records. The offsets that are committed of it are offsets in the order.
        """
        return f"{self.app}.shards"

    def log_of(self, place: TopicPartition) -> TopicPartition:
        """Return the partition to which the committed offset of an input belongs."""
        return self.order if place.topic == self.seats else place

    def matches(self, shard: int) -> str:
        """Name the topic of a shard's answers."""
        return f"{self.app}.matches-{shard}"

    @property
    def redrive(self) -> str:
        """Name the topic of how far the rejected were sent again; also the writer's id."""
        return f"{self.app}.redrive"

    @property
    def layout_log(self) -> str:
        """Name the topic of what the workers have agreed on; also the id of who writes it."""
        return f"{self.app}.layout"

    @property
    def columns(self) -> int:
        """Count the key columns: a band each, and the exact text."""
        return self.parameters.bands + 1

    @property
    def layout(self) -> str:
        """Name everything on which workers must agree to understand each other's frames."""
        facts = {
            "app": self.app,
            "partitions": self.partitions,
            "shards": self.shards,
            **self.parameters.describe(),
        }
        return blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=6).hexdigest()

    def group(self, stage: str) -> str:
        """Name a stage's consumer group."""
        return f"{self.app}.{stage}"

    def inputs(self, stage: str) -> dict[str, int]:
        """Give the topics that a stage reads, with their partition counts."""
        answers = {self.matches(shard): self.partitions for shard in range(self.shards)}
        return {
            "fingerprint": {self.documents: self.partitions},
            "index": {self.seats: self.shards},
            "route": {self.documents: self.partitions, **answers},
        }[stage]

    def internal(self) -> dict[str, int]:
        """Give the topics between the stages, with their partition counts."""
        answers = {self.matches(shard): self.partitions for shard in range(self.shards)}
        return {self.fingerprints: 1, self.seats: self.shards, **answers}
