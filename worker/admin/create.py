"""Creates topics with every setting that exactly-once needs; changes no existing topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from worker.admin.agreement import begun_with
from worker.admin.cluster import Cluster, TopicState
from worker.admin.plan import DEFAULT_MAX_BYTES, TopicPlan, plan, redrive_plan
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.topology import Topology
from worker.visible import counted

_New = tuple[int, dict[str, str]]
"""The number of partitions, and the settings."""

_PARTITIONS = 4
_REPLICATION = 3
_NEAR = 0.8
"""How much of two names is the same if one may be a misspelling of the other."""


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


def create(  # noqa: PLR0913 -- the options of `neardup topics create`
    cluster: Cluster,
    settings: Settings,
    generations: Plan | None = None,
    *,
    partitions: int | None = None,
    replication: int | None = None,
    documents_max_bytes: int = DEFAULT_MAX_BYTES,
) -> Created:
    """Create the topics of the generation in use that don't exist.

    Without ``generations``, the application was never reindexed.

    By default they have as many replicas as there are brokers, but at most three. If topics of the
    application have more, a broker is away: they have these then, too.

    Raises:
        ConfigurationError: ``partitions`` differs from the documents' number, topics that exist
            don't fit, or the documents' name is nearly that of another topic.
        TooFewBrokers: some don't exist, and can't have so many replicas.
        BusError: the cluster doesn't answer, or refuses.
    """
    generations = generations or Plan.of(settings)
    named = generations.topology(settings, 1)
    name = named.documents
    brokers, found = cluster.topics([name])
    documents = found[name]
    begun = begun_with(cluster, named)
    if documents is not None:
        if partitions not in (None, documents.partitions):
            raise ConfigurationError(
                f"--partitions: got {partitions}, but {name} exists and has {documents.partitions}."
                " Leave the option out; `neardup reindex --partitions` adds more later"
            )
        partitions = documents.partitions
        documents_max_bytes = int(documents.settings.get("max.message.bytes", DEFAULT_MAX_BYTES))
    else:
        _refuse_misspelt(cluster, settings, name)
    if documents is None and begun is not None and partitions not in (None, begun):
        raise ConfigurationError(
            f"--partitions: got {partitions}, but {named.app} was set up with {begun}"
        )
    partitions = begun or partitions
    topology = generations.topology(settings, partitions or _PARTITIONS)
    plans = list(plan(generations.settings(settings), topology, documents_max_bytes))
    _, states = cluster.topics(one.name for one in plans)
    _refuse_other_partitions(plans, states)
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


def _refuse_misspelt(cluster: Cluster, settings: Settings, name: str) -> None:
    """Refuse to create a topic that the settings name if there is one by nearly the same name."""
    if not settings.topics.documents:
        return
    _, there = cluster.counts()
    others = [topic for topic in there if not topic.startswith(f"{settings.app}.")]
    near = get_close_matches(name, others, 1, _NEAR)
    if near:
        raise ConfigurationError(
            f"topics.documents: got {name!r}, which is no topic; did you mean {near[0]}? If not,"
            f" create {name} first"
        )


def _refuse_other_partitions(
    plans: Sequence[TopicPlan], states: Mapping[str, TopicState | None]
) -> None:
    """Refuse topics between the stages that don't fit what is to be created beside them."""
    for one in plans:
        state = states[one.name]
        if state is None or not one.internal or state.partitions == one.partitions:
            continue
        if not (one.grows and state.partitions > one.partitions):
            raise ConfigurationError(
                f"{one.name} exists and has {counted(state.partitions, 'partition')}, must have"
                f" {one.partitions_why}. Nothing was created"
            )


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
