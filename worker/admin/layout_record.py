"""Reads the record in the topic ``APP.layout``."""

from __future__ import annotations

from worker.admin.agreement import Facts, load, partitions_in
from worker.admin.cluster import Cluster
from worker.bus import BusError
from worker.topology import Topology

LAYOUT_KEY = b"layout"


def recorded(cluster: Cluster, topology: Topology) -> Facts | None:
    """Return the facts recorded in the topic, which must exist; None if there are none.

    Raises:
        BusError: the cluster doesn't answer, or the record can't be understood.
    """
    topic = topology.layout_log
    value = cluster.last_records(topic).get(LAYOUT_KEY)
    try:
        return None if value is None else load(value)
    except ValueError as error:
        raise BusError(f"{topic}: its record can't be understood: {error}") from error


def begun_with(cluster: Cluster, topology: Topology) -> int | None:
    """Return with how many partitions of the documents an application began, if that is recorded.

    Raises:
        BusError: the cluster doesn't answer, or the record can't be understood.
    """
    _, topics = cluster.counts()
    facts = recorded(cluster, topology) if topology.layout_log in topics else None
    return None if facts is None else partitions_in(facts, topology.documents)
