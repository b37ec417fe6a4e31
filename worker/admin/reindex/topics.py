"""The topics and groups of generations: where they begin, what is added, and what is deleted.

The stages meet by partition number, so the answers need as many partitions as the documents. What
is in a partition before the workers read it waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from worker.admin.cluster import Cluster
from worker.bus import Offset, TopicPartition
from worker.bus.kafka.groups import Offsets
from worker.generations.plan import Plan
from worker.generations.turns import WAITING
from worker.settings.errors import ConfigurationError
from worker.topology import Topology


@dataclass(frozen=True, slots=True)
class Grown:
    """The partitions that were added.

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
    joined = {topic: counts[topic][0] for topic in (topology.documents, *topology.answers)}
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


def set_starts(cluster: Cluster, source: Topology, target: Topology) -> None:
    """Set where the groups of a new generation begin, which may have a log of its own.

    Before that log is handed over, only *refingerprint* writes it. ``source`` is the topology of
    the generation in use.

    Raises:
        BusError: the cluster refuses.
    """
    if target.log != source.log:
        low, _ = cluster.ranges({source.fingerprints: 1})[source.order]
        group = source.group("fingerprint")
        places = [TopicPartition(target.documents, n) for n in range(target.layout.partitions)]
        reached = cluster.committed({group: places})[group]
        waiting = {place: Offset(reached.get(place, 0), WAITING) for place in places}
        _set_missing(cluster, target.group("refingerprint"), {source.order: low})
        _set_missing(cluster, target.group("fingerprint"), waiting)
    low, _ = cluster.ranges({target.fingerprints: 1})[target.order]
    seats = [TopicPartition(target.seats, shard) for shard in range(target.layout.shards)]
    of = {target.seats: target.fingerprints}
    _set_missing(cluster, target.group("index"), dict.fromkeys(seats, Offset(low, WAITING)), of)


def _set_missing(
    cluster: Cluster, group: str, offsets: Offsets, of: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Commit the offsets that a group lacks; for ``of`` see `Cluster.commit`."""
    present = cluster.committed({group: offsets})[group]
    missing = {place: at for place, at in offsets.items() if place not in present}
    if missing:
        cluster.commit(group, missing, of=of)


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
        yield from cluster.delete([topology.seats, *topology.answers])
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
