"""Creates topics with every setting that exactly-once needs; changes no existing topic."""

from __future__ import annotations

from dataclasses import dataclass

from worker.admin.cluster import Cluster
from worker.admin.layout_record import begun_with
from worker.admin.plan import DEFAULT_MAX_BYTES, TopicPlan, plan, redrive_plan
from worker.settings import ConfigurationError, Settings
from worker.topology import Topology

__all__ = ["Created", "TooFewBrokers", "create", "create_redrive"]

_New = tuple[int, dict[str, str]]
"""The number of partitions, and the settings."""

_PARTITIONS = 4
_REPLICATION = 3


class TooFewBrokers(ConfigurationError):
    """There are fewer brokers than a topic is to have replicas."""

    def __init__(self, replicas: int, brokers: int, *, asked: bool) -> None:
        """Take how many replicas are wanted, and how many brokers are up.

        ``asked``: somebody has asked for so many; else the application's topics have them.
        """
        super().__init__(
            f"--replication: got {replicas}, must be at most {brokers}, the number of brokers"
            if asked
            else f"the application's topics have {replicas} replicas, but only {brokers} of the"
            " brokers answered: run it again once more are up, or give --replication"
        )
        self.replicas = replicas
        self.brokers = brokers


@dataclass(frozen=True, slots=True)
class Created:
    """The topics that were created, and those that existed already."""

    topology: Topology
    made: list[str]
    found: list[str]
    replication: int


def create(
    cluster: Cluster,
    settings: Settings,
    *,
    partitions: int | None = None,
    replication: int | None = None,
    documents_max_bytes: int = DEFAULT_MAX_BYTES,
) -> Created:
    """Create the topics that don't exist.

    By default they have as many replicas as there are brokers, but at most three. If topics of the
    application have more, a broker is away: they have these then, too.

    Raises:
        ConfigurationError: ``partitions`` differs from the documents' number.
        TooFewBrokers: some don't exist, and can't have so many replicas.
        BusError: the cluster doesn't answer, or refuses.
    """
    name = settings.topology(1).documents
    brokers, found = cluster.topics([name])
    documents = found[name]
    if documents is not None:
        if partitions not in (None, documents.partitions):
            raise ConfigurationError(
                f"--partitions: got {partitions}, but {name} exists and has {documents.partitions}"
            )
        partitions = begun_with(cluster, settings.topology(1)) or documents.partitions
        documents_max_bytes = int(documents.settings.get("max.message.bytes", DEFAULT_MAX_BYTES))
    topology = settings.topology(partitions or _PARTITIONS)
    plans = list(plan(settings, topology, documents_max_bytes))
    _, states = cluster.topics(one.name for one in plans)
    most = max(brokers, *(0 if state is None else state.replicas for state in states.values()))
    replicas = replication or min(_REPLICATION, most)
    missing = {one.name: _new(one, replicas) for one in plans if states[one.name] is None}
    if missing and replicas > brokers:
        raise TooFewBrokers(replicas, brokers, asked=replication is not None)
    # The documents first: their settings show which ones these brokers know.
    first = {topic: missing.pop(topic) for topic in [name] if topic in missing}
    made = cluster.create(first, replicas)
    made += _create_known(cluster, name, missing, replicas)
    return Created(topology, made, [one.name for one in plans if one.name not in made], replicas)


def create_redrive(cluster: Cluster, topology: Topology, replicas: int) -> None:
    """Create the topic of *redrive*'s progress, for an application that was created without it.

    Raises:
        BusError: the cluster doesn't answer, or refuses.
    """
    new = {topology.redrive: _new(redrive_plan(topology), replicas)}
    _create_known(cluster, topology.documents, new, replicas)


def _new(one: TopicPlan, replicas: int) -> _New:
    min_isr = {"min.insync.replicas": "2" if replicas >= _REPLICATION else "1"}
    return one.partitions, {**one.settings(), **min_isr}


def _create_known(
    cluster: Cluster, existing: str, topics: dict[str, _New], replicas: int
) -> list[str]:
    """Create topics with those settings that these brokers know, according to an existing topic."""
    if not topics:
        return []
    known = cluster.known_settings(existing)
    return cluster.create(
        {
            topic: (count, {key: value for key, value in given.items() if key in known})
            for topic, (count, given) in topics.items()
        },
        replicas,
    )
