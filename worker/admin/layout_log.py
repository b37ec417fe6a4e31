"""The topic ``APP.layout``: what the workers of an application have agreed on.

It is written before the first worker starts, and compared by every worker before it joins a
group. A compacted topic keeps the record for ever, which a group's offsets don't.
"""

from __future__ import annotations

from random import uniform
from time import sleep

from worker.admin.cluster import Cluster
from worker.admin.compacted import PARTITION
from worker.admin.starts import used_topics
from worker.bus import Aborted, BusError, Fenced, OutcomeUnknown, Outgoing
from worker.bus.kafka.producer import TransactionalProducer
from worker.layout import Difference, Facts, agreed, differences, dump, load
from worker.settings import ConfigurationError, Settings
from worker.topology import Topology

__all__ = ["agree", "recorded", "refuse_others"]

_KEY = b"layout"
_TRIES = 8
_PAUSE_SECONDS = 3.0


def agree(
    cluster: Cluster, settings: Settings, topology: Topology, *, replace: bool = False
) -> list[Difference] | None:
    """Record these settings as what all workers agree on; return what that changed.

    None: they were recorded already. An empty list: nothing was. What is recorded is replaced
    only with ``replace``, and, once work has begun, only as far as an operator may choose.

    Raises:
        ConfigurationError: something else is recorded, and may not be replaced.
        BusError: the cluster doesn't answer, or refuses.
    """
    begun = bool(used_topics(cluster.ranges(topology.internal())))
    return _record(cluster, topology, agreed(settings, topology), begun=begun, replace=replace)


def refuse_others(cluster: Cluster, settings: Settings) -> None:
    """Refuse settings with which this application can't go on, before anything is made for them.

    Raises:
        ConfigurationError: names what differs from what is recorded.
        BusError: the cluster doesn't answer, or the record can't be understood.
    """
    named = Topology.of(settings, 1)
    _, found = cluster.topics([named.documents, named.layout_log])
    documents = found[named.documents]
    if documents is None or found[named.layout_log] is None:
        return
    topology = Topology.of(settings, documents.partitions)
    known = recorded(cluster, topology)
    if known is not None:
        others = [
            one for one in differences(known, agreed(settings, topology)) if not one.by_choice
        ]
        _refuse(topology, others, begun=True, replace=False)


def recorded(cluster: Cluster, topology: Topology) -> Facts | None:
    """Return what is recorded in the topic, which must exist; None if nothing is.

    Raises:
        BusError: the cluster doesn't answer, or the record can't be understood.
    """
    topic = topology.layout_log
    value = cluster.last_records(topic).get(_KEY)
    try:
        return None if value is None else load(value)
    except ValueError as error:
        raise BusError(f"{topic}: what it has recorded can't be understood: {error}") from error


def _record(
    cluster: Cluster, topology: Topology, facts: Facts, *, begun: bool, replace: bool = False
) -> list[Difference] | None:
    """Record facts. Two that do it at the same time come one after the other.

    The second then sees what the first has written.
    """
    topic = topology.layout_log
    producer = TransactionalProducer(cluster.options, topic, topic)
    line = Outgoing(topic, PARTITION, _KEY, dump(facts))
    try:
        for _ in range(_TRIES):
            # Whoever else records is fenced from here on, so what is read now stays true. Two that
            # fence each other each wait for a while of its own.
            producer.renew()
            known = recorded(cluster, topology)
            found = [] if known is None else differences(known, facts)
            if known is not None and not found:
                return None
            _refuse(topology, found, begun=begun, replace=replace)
            try:
                producer.commit([line], {})
            except (OutcomeUnknown, Aborted, Fenced):
                sleep(uniform(0, _PAUSE_SECONDS))  # noqa: S311 -- no secret
                continue  # The next round reads what was written, by whomever.
            return found
    finally:
        producer.close()
    raise BusError(f"{topic}: the layout could not be recorded in {_TRIES} tries")


def _refuse(topology: Topology, found: list[Difference], *, begun: bool, replace: bool) -> None:
    fixed = [one for one in found if not one.by_choice]
    if begun and fixed:
        raise ConfigurationError(
            f"{topology.app} works with other settings, which can't be changed once it has begun:"
            f" {_listed(fixed)}. To use these, choose another --app"
        )
    if found and not replace:
        option = "--accept" if begun else "--force"
        raise ConfigurationError(
            f"{topology.app} was set up with other settings: {_listed(found)}. If all workers are"
            f" to use these from now on, run `neardup init {option}`"
        )


def _listed(found: list[Difference]) -> str:
    return "; ".join(f"{one.name} is {one.recorded} there and {one.here} here" for one in found)
