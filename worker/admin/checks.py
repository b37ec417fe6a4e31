"""Checks whether topics, their settings and the groups' offsets are as exactly-once needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from worker.admin.agreement import (
    Difference,
    Facts,
    agreed,
    differences,
    partitions_in,
    recorded,
    way_on,
)
from worker.admin.cluster import Cluster, TopicState
from worker.admin.offsets import CutLog, check_offsets, check_order, cut_logs, inputs, lost_answers
from worker.admin.plan import DEFAULT_MAX_BYTES, TopicPlan, plan
from worker.admin.problem import Problem, Rule
from worker.admin.reindex.in_use import in_use, other_rules, other_than_in_use
from worker.admin.starts import used_topics
from worker.bus import TopicPartition, state_of
from worker.generations.plan import Plan
from worker.generations.turns import WAITING
from worker.settings.model import Settings
from worker.topology import STAGES, Topology

_SAFE_REPLICATION = 3
_BOUNDS = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")


@dataclass(frozen=True, slots=True)
class Inspection:
    """The state of an application's topics and groups, and the problems."""

    topology: Topology
    brokers: int
    plans: list[TopicPlan]
    topics: Mapping[str, TopicState | None]
    committed: Mapping[str, Mapping[TopicPartition, int]]
    ranges: Mapping[TopicPartition, tuple[int, int]]
    problems: list[Problem]
    truncated: list[CutLog]


def verify(
    settings: Settings, on_undecided: Callable[[], None] = lambda: None
) -> tuple[int, list[Problem]]:
    """Return how many partitions of the documents are read (0: no such topic), and the problems.

    ``on_undecided``: see `Cluster`.

    Raises:
        BusError: the cluster doesn't answer in time, or refuses.
    """
    found = inspect(Cluster(settings.kafka_options(), on_undecided=on_undecided), settings)
    there = found.topics[found.topology.documents] is not None
    return found.topology.layout.partitions if there else 0, found.problems


@dataclass(frozen=True, slots=True)
class _Topics:
    """The topics of an application, and what there is to be of each."""

    settings: Settings
    """Those of the generation in use."""
    topology: Topology
    brokers: int
    plans: list[TopicPlan]
    states: Mapping[str, TopicState | None]
    facts: Facts | None
    generations: Plan
    others: list[Difference]

    def problems(self, recounted: str = "") -> Iterator[Problem]:
        """Yield what is wrong with topics and their settings."""
        for one in self.plans:
            yield from _topic(one, self.states[one.name], recounted)
        if self.states[self.topology.documents] is not None:
            yield from _bounds(self.topology, self.states)


def topic_problems(cluster: Cluster, settings: Settings) -> list[Problem]:
    """Return what is wrong with topics and their settings, without looking at any offset.

    Raises:
        BusError: the cluster doesn't answer in time, or refuses.
    """
    return list(_topics(cluster, settings).problems())


def _topics(cluster: Cluster, settings: Settings) -> _Topics:
    generations = in_use(cluster, settings)
    others = list(other_rules(generations, settings))
    settings = generations.settings(settings)
    named = generations.topology(settings, 1)
    first = list(plan(settings, named, DEFAULT_MAX_BYTES))
    brokers, topics = cluster.topics(
        [one.name for one in first], optional={one.name for one in first if not one.required}
    )
    documents = topics[named.documents]
    facts = None
    if documents is not None and topics[named.layout_log] is not None:
        facts = recorded(cluster, named)
    begun_with = None if facts is None else partitions_in(facts, named.documents)
    partitions = begun_with or (documents.partitions if documents else 1)
    topology = generations.topology(settings, partitions)
    max_bytes = DEFAULT_MAX_BYTES
    if documents is not None:
        max_bytes = int(documents.settings.get("max.message.bytes", max_bytes))
    plans = list(plan(settings, topology, max_bytes))
    return _Topics(settings, topology, brokers, plans, topics, facts, generations, others)


def inspect(cluster: Cluster, settings: Settings) -> Inspection:
    """Return the state of everything, in a few requests."""
    given, found = settings, _topics(cluster, settings)
    settings, topology, topics, plans = found.settings, found.topology, found.states, found.plans
    documents = topics[topology.documents]
    counts = {name: state.partitions for name, state in topics.items() if state is not None}
    wanted = {stage: inputs(topology, stage, counts) for stage in STAGES}
    # Route trails fingerprint, and both advance: asked first, it still appears to trail.
    read_to = cluster.annotated({topology.group("route"): wanted.pop("route")})
    read_to |= cluster.annotated(
        {topology.group(one): partitions for one, partitions in wanted.items()}
    )
    committed = {
        group: {partition: one.offset for partition, one in partitions.items()}
        for group, partitions in read_to.items()
    }
    committed |= _fingerprinted(cluster, topology, found.generations, committed)
    # The logs' ends come last: an active group would otherwise appear to be past them.
    read = {topology.documents, *topology.internal()}
    ranges = cluster.ranges({name: count for name, count in counts.items() if name in read})
    internal = topology.internal()
    begun = bool(used_topics({p: span for p, span in ranges.items() if p.topic in internal}))
    different = _different(found, given)
    problems = [
        *_layout(topology, found.others, begun=True),
        *_layout(topology, different, begun=begun),
    ]
    if not found.others:
        problems += _outdated(topology, found.generations, given)
    if any(one.name == "index.shards" for one in different or ()):
        # These settings then expect the wrong topics and groups: other checks mean nothing.
        return Inspection(topology, found.brokers, plans, topics, committed, ranges, problems, [])
    problems += found.problems(_other_application(topology) if begun else "")
    truncated: list[CutLog] = []
    if documents is not None:
        problems += check_offsets(
            topology,
            counts,
            committed,
            ranges,
            skip_deleted=settings.documents.skip_deleted,
            forgets=settings.index.log_window_ms is not None,
            begun=begun,
        )
        truncated = list(cut_logs(cluster, topology, read_to))
        problems += [one.problem for one in truncated]
        if _between_logs(topology, committed, ranges):
            # Records that an open transaction holds back are in flight, not lost.
            written = cluster.ranges({name: counts[name] for name in read & set(counts)},
                                     committed=False)  # fmt: skip
            problems += _between_logs(topology, committed, written)
    problems.sort(key=lambda problem: problem.severity)
    return Inspection(
        topology, found.brokers, plans, topics, committed, ranges, problems, truncated
    )


def _fingerprinted(
    cluster: Cluster,
    topology: Topology,
    generations: Plan,
    committed: Mapping[str, Mapping[TopicPartition, int]],
) -> dict[str, dict[TopicPartition, int]]:
    """Return how far *fingerprint* is, while one log of fingerprints takes over from another."""
    if generations.following is None or not generations.closing:
        return {}
    group = topology.group("fingerprint")
    own = replace(topology, log=generations.following.log).group("fingerprint")
    partitions = committed[group]
    following = cluster.committed({own: partitions})[own]
    begun = {place: at for place, at in following.items() if state_of(at) != WAITING}
    return {group: {**partitions, **begun}}


def _between_logs(
    topology: Topology,
    committed: Mapping[str, Mapping[TopicPartition, int]],
    ranges: Mapping[TopicPartition, tuple[int, int]],
) -> list[Problem]:
    """Return the problems that show only where one stage's offsets meet another's records."""
    return [
        *check_order(topology, committed, ranges),
        *lost_answers(topology, committed, ranges),
    ]


def _different(found: _Topics, settings: Settings) -> list[Difference] | None:
    """Return the differences between these settings and the recorded ones; None: not recorded."""
    topology, topics, generations = found.topology, found.states, found.generations
    if topics[topology.layout_log] is None or topics[topology.documents] is None:
        return []
    if found.facts is None:
        return None
    base = generations.base_topology(settings, topology.layout.begun_with)
    return differences(found.facts, agreed(generations.base.settings(settings), base))


def _outdated(topology: Topology, plan: Plan, settings: Settings) -> Iterator[Problem]:
    """Yield settings that are still those from before a reindex; workers don't go by them."""
    if plan.following is not None:
        return
    for one in other_than_in_use(plan, settings):
        yield Problem(
            "warning", topology.layout_log, one.name, f"{one.here} here",
            f"{one.recorded}, as in generation {plan.current.number}, which is in use",
            "workers go by the generation in use; commands without Kafka, by the settings",
            fix="change the settings",
        )  # fmt: skip


def _layout(
    topology: Topology, different: list[Difference] | None, *, begun: bool
) -> Iterator[Problem]:
    """Yield the differences between these settings and what the workers have agreed on."""
    if different is None:
        yield Problem(
            "error", topology.layout_log, "what the workers agree on", "not recorded", "there",
            fix="neardup init",
        )  # fmt: skip
        return
    for one in different:
        yield Problem(
            "error", topology.layout_log, one.name, f"{one.here} here",
            f"{one.recorded}, as for all workers of {topology.app}",
            "workers that differ would judge the same documents differently" if one.by_choice
            else "workers that differ don't understand each other's frames",
            fix=way_on(one, topology.app, begun=begun),
        )  # fmt: skip


def _other_application(topology: Topology) -> str:
    """Return how to continue with another number of partitions. Kafka can't take one away."""
    return (
        f"begin another application where this one stopped publishing: neardup topics create --app"
        f" OTHER --from app:{topology.app}, with topics.documents={topology.documents}; see"
        " the runbook, 'Partitions were added'"
    )


def _topic(one: TopicPlan, state: TopicState | None, recounted: str) -> Iterator[Problem]:
    """Yield a topic's problems; ``recounted`` mends wrong partitions once work has begun."""
    if state is None:
        yield Problem(
            "error" if one.required else "warning", one.name, "the topic", "missing", "there",
            fix="neardup topics create",
        )  # fmt: skip
        return
    if one.grows and state.partitions > one.partitions:
        yield Problem(
            "warning", one.name, "its number of partitions", str(state.partitions),
            one.partitions_why, "documents in the other partitions wait",
            f"neardup reindex --partitions {state.partitions}",
        )  # fmt: skip
    elif state.partitions != one.partitions:
        yield Problem(
            "error" if one.fixed_partitions else "warning",
            one.name,
            "its number of partitions",
            str(state.partitions),
            one.partitions_why,
            fix=recounted or _recounted(one, state) if one.internal else one.partitions_fix,
        )
    for rule in one.rules:
        given = state.settings.get(rule.setting)
        if given is not None and not rule.holds(given):
            yield _broken(one.name, rule, given)
    yield from _replication(one.name, state)


def _recounted(one: TopicPlan, state: TopicState) -> str:
    """Return how to mend the partitions of a topic between the stages, without deleting it."""
    if state.partitions < one.partitions:
        return (
            f"kafka-topics.sh --bootstrap-server ... --alter --topic {one.name}"
            f" --partitions {one.partitions}"
        )
    return "neardup topics create --app OTHER: nothing was processed yet"


def _broken(topic: str, rule: Rule, given: str) -> Problem:
    value = rule.value
    if (rule.setting, value) == ("cleanup.policy", "delete"):
        # Compaction kept records for ever, which a retention would delete at once.
        value = "delete,retention.ms=-1,retention.bytes=-1"
    return Problem(
        rule.severity, topic, rule.setting, given, rule.takes, rule.why,
        _set(topic, rule.setting, value),
    )  # fmt: skip


def _set(topic: str, setting: str, value: str) -> str:
    return (
        f"kafka-configs.sh --bootstrap-server ... --alter --topic {topic}"
        f" --add-config {setting}={value}"
    )


def _replication(topic: str, state: TopicState) -> Iterator[Problem]:
    setting = "min.insync.replicas"
    minimum = int(state.settings.get(setting, "1"))
    if minimum > state.replicas:
        yield Problem(
            "error", topic, setting, str(minimum), f"at most its {state.replicas} replicas",
            "no record can be written", _set(topic, setting, str(max(1, state.replicas - 1))),
        )  # fmt: skip
    elif state.replicas >= _SAFE_REPLICATION and minimum < 2:  # noqa: PLR2004 -- two copies
        yield Problem(
            "warning", topic, setting, str(minimum), f"2 of its {state.replicas} replicas",
            "a record that only one broker has is lost with it", _set(topic, setting, "2"),
        )  # fmt: skip
    elif 1 < state.replicas == minimum:
        yield Problem(
            "warning", topic, setting, str(minimum), f"less than its {state.replicas} replicas",
            "the loss of one broker stops all writing",
            _set(topic, setting, str(state.replicas - 1)),
        )  # fmt: skip


def _bounds(topology: Topology, topics: Mapping[str, TopicState | None]) -> Iterator[Problem]:
    """Yield outputs that accept fewer timestamps than the documents do."""
    documents = topics[topology.documents]
    for name in (topology.unique, topology.duplicate, topology.rejected):
        output = topics[name]
        if documents is None or output is None:
            continue
        if output.settings.get("message.timestamp.type") == "LogAppendTime":
            continue
        for bound in _BOUNDS:
            given, needed = output.settings.get(bound), documents.settings.get(bound)
            if given is not None and needed is not None and int(given) < int(needed):
                yield Problem(
                    "error", name, bound, given, f"at least {needed}, as the documents have",
                    "the topic may refuse a document for its time, which stops the worker",
                    _set(name, bound, needed),
                )  # fmt: skip
