"""Has the workers of an application read partitions that were added to its documents.

The stages meet by partition number, so the answers need as many partitions as the documents. What
is in a partition before the workers read it waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from worker.admin.cluster import Cluster
from worker.bus.kafka.groups import Offsets
from worker.generations import Plan
from worker.settings import ConfigurationError
from worker.topology import Topology

__all__ = ["Grown", "grow", "starts"]


@dataclass(frozen=True, slots=True)
class Grown:
    """What was done.

    Attributes:
        read: how many partitions of the documents were read before.
        added: the topics to which partitions were added, and how many they have now.
    """

    read: int
    added: Mapping[str, int]


def grow(cluster: Cluster, plan: Plan, topology: Topology, partitions: int) -> Grown:
    """Add partitions to the topics that lack some, for workers to read so many of the documents.

    ``topology`` is that of the generation in use, with the partitions that are read now. May be
    called again, by any process.

    Raises:
        ConfigurationError: another index is being built, or some topic has more partitions.
        BusError: the cluster doesn't answer, or refuses.
    """
    if plan.following is not None:
        raise ConfigurationError(
            "--partitions: another index is being built; finish that with `neardup reindex`, or"
            " give it up with --abort"
        )
    read = topology.layout.partitions
    _, counts = cluster.counts()
    answers = [topology.matches(shard) for shard in range(topology.layout.shards)]
    joined = {topic: counts[topic][0] for topic in (topology.documents, *answers)}
    largest = max(joined, key=lambda topic: joined[topic])
    if partitions < joined[largest]:
        raise ConfigurationError(
            f"--partitions: got {partitions}, but {largest} has {joined[largest]}, and Kafka can't"
            " take partitions away"
        )
    outputs = (topology.unique, topology.duplicate, topology.rejected)
    # Those that keep a document's partition go on to do so.
    kept = {topic: counts[topic][0] for topic in outputs if counts[topic][0] == read}
    added = {topic: partitions for topic, has in {**joined, **kept}.items() if has < partitions}
    # All in one request: members of a group then take the new ones of all topics up together.
    cluster.widen(added)
    return Grown(read, added)


def starts(cluster: Cluster, topology: Topology, partitions: int) -> dict[str, Offsets]:
    """Return by group where it begins the partitions that it doesn't read yet: where they begin.

    Raises:
        BusError: the cluster doesn't answer.
    """
    inputs = topology.widened(partitions).inputs("route")
    first = {
        place: low
        for place, (low, _) in cluster.ranges(inputs).items()
        if place.partition >= topology.layout.partitions
    }
    documents = {place: low for place, low in first.items() if place.topic == topology.documents}
    return {topology.group("fingerprint"): documents, topology.group("route"): first}
