"""The topic ``APP.layout``: the settings that the workers of an application have agreed on.

It is written before the first worker starts, and every worker checks it before joining a group. A
compacted topic keeps the record for ever; a group's offsets expire.
"""

from __future__ import annotations

from contextlib import closing
from random import uniform
from time import sleep

from worker.admin.agreement import (
    LAYOUT_KEY,
    Difference,
    Facts,
    agreed,
    differences,
    dump,
    partitions_in,
    recorded,
    way_on,
)
from worker.admin.cluster import Cluster
from worker.admin.reindex.in_use import in_use, other_rules
from worker.admin.starts import used_topics
from worker.bus import Aborted, BusError, Fenced, OutcomeUnknown, Outgoing
from worker.bus.kafka.bus import KafkaBus
from worker.bus.ranges import PARTITION
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.topology import Topology

_TRIES = 8
_PAUSE_SECONDS = 3.0


def agree(
    cluster: Cluster, settings: Settings, topology: Topology, *, replace: bool = False
) -> list[Difference] | None:
    """Record these settings as those of all workers; return what that changed.

    Returns None if they were recorded already, and an empty list if nothing was recorded. Recorded
    settings are replaced only with ``replace``. Once work has begun, only those that an operator
    may choose are replaced.

    Raises:
        ConfigurationError: other settings are recorded, and may not be replaced.
        BusError: the cluster doesn't answer, or refuses.
    """
    begun = bool(used_topics(cluster.ranges(topology.internal())))
    plan = _known(cluster, settings)
    settings = plan.base.settings(settings)
    topology = plan.base_topology(settings, topology.layout.begun_with)
    return _record(cluster, topology, agreed(settings, topology), begun=begun, replace=replace)


def refuse_others(cluster: Cluster, settings: Settings) -> None:
    """Refuse settings other than the recorded ones, before any topic is created.

    Raises:
        ConfigurationError: names the settings that differ from the recorded ones.
        BusError: the cluster doesn't answer, or the record can't be understood.
    """
    named = settings.topology(1)
    _, counts = cluster.counts()
    known = recorded(cluster, named) if named.layout_log in counts else None
    if known is None:
        return
    plan = _known(cluster, settings)
    partitions = partitions_in(known, named.documents) or 1
    topology = plan.base_topology(settings, partitions)
    used = plan.topology(settings, partitions).internal()
    there = {topic: count for topic, count in used.items() if topic in counts}
    begun = bool(used_topics(cluster.ranges(there)))
    _refuse(
        topology,
        differences(known, agreed(plan.base.settings(settings), topology)),
        begun=begun,
        replace=False,
    )


def _known(cluster: Cluster, settings: Settings) -> Plan:
    """Return the plan of generations, of which one has these settings.

    Raises:
        ConfigurationError: they are those of none of its generations.
    """
    plan = in_use(cluster, settings)
    _refuse(settings.topology(1), list(other_rules(plan, settings)), begun=True, replace=False)
    return plan


def _record(
    cluster: Cluster, topology: Topology, facts: Facts, *, begun: bool, replace: bool = False
) -> list[Difference] | None:
    """Record facts. If two processes do so at the same time, the second sees the first's record."""
    topic = topology.layout_log
    line = Outgoing(topic, PARTITION, LAYOUT_KEY, dump(facts))
    with closing(KafkaBus(cluster.options).log_writer(topic, topic)) as writer:
        for _ in range(_TRIES):
            # Any other writer is fenced from here on, so what is read now stays true. Two that
            # fence each other wait for random times.
            writer.renew()
            known = recorded(cluster, topology)
            found = [] if known is None else differences(known, facts)
            if known is not None and not found:
                return None
            _refuse(topology, found, begun=begun, replace=replace)
            try:
                writer.commit([line])
            except (OutcomeUnknown, Aborted, Fenced):
                sleep(uniform(0, _PAUSE_SECONDS))  # noqa: S311 -- not for cryptography
                continue  # The next attempt reads what was written, and by which writer.
            return found
    raise BusError(f"{topic}: the layout could not be recorded in {_TRIES} attempts")


def _refuse(topology: Topology, found: list[Difference], *, begun: bool, replace: bool) -> None:
    fixed = [one for one in found if not one.by_choice]
    if begun and fixed:
        raise ConfigurationError(
            f"{topology.app} runs with other settings, which can't be changed once it has begun:"
            f" {_listed(fixed)}; {way_on(fixed[0], topology.app, begun=begun)}"
        )
    if found and not replace:
        raise ConfigurationError(
            f"{topology.app} was set up with other settings: {_listed(found)};"
            f" {way_on(found[0], topology.app, begun=begun)}"
        )


def _listed(found: list[Difference]) -> str:
    return "; ".join(f"{one.name} is {one.recorded} there and {one.here} here" for one in found)
