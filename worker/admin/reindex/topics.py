"""The topics of generations: partitions that are added, and what is deleted once nobody runs one.

The stages meet by partition number, so the answers need as many partitions as the documents. What
is in a partition before the workers read it waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from worker.admin.cluster import Cluster
from worker.bus.kafka.groups import Offsets
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError
from worker.topology import Topology


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


def delete_left(cluster: Cluster, plan: Plan, base: Topology) -> Iterator[str]:
    """Delete the topics and groups that no generation reads any more; yield the topics' names.

    ``base`` is the topology of generation 0.

    Raises:
        BusError: the cluster refuses, for example because a worker still is in a group.
    """
    for generation in plan.left:
        topology = generation.topology(base)
        cluster.delete_group(topology.group("index"))
        answers = [topology.matches(shard) for shard in range(generation.shards)]
        yield from cluster.delete([topology.seats, *answers])
    for log, topology in _unread(plan, base).items():
        if log:
            cluster.delete_group(topology.group("refingerprint"))
        cluster.delete_group(topology.group("fingerprint"))
        yield from cluster.delete([topology.fingerprints])
    if plan.current.log and plan.following is None:
        cluster.delete_group(plan.current.topology(base).group("refingerprint"))


def _unread(plan: Plan, base: Topology) -> dict[int, Topology]:
    """Return the logs of fingerprints that no generation reads any more."""
    read = {one.log for one in plan.generations()}
    left = {one.log: one.topology(base) for one in plan.left}
    return {log: topology for log, topology in left.items() if log not in read}
