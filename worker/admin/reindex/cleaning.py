"""Deletes what earlier generations have left on the brokers."""

from __future__ import annotations

from collections.abc import Iterator

from worker.admin.cluster import Cluster
from worker.generations import Plan
from worker.topology import Topology

__all__ = ["delete_left"]


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
