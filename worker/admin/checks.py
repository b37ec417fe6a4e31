"""Checks whether topics, their settings and the groups' offsets are as the promise needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from worker.admin.cluster import Cluster, TopicState
from worker.admin.layout_log import recorded
from worker.admin.offsets import check_offsets, inputs, lost_answers
from worker.admin.plan import DEFAULT_MAX_BYTES, Rule, TopicPlan, plan
from worker.admin.problem import Problem
from worker.bus import TopicPartition
from worker.layout import agreed, differences
from worker.settings import Settings
from worker.topology import STAGES, Topology

__all__ = ["Inspection", "Problem", "inspect", "verify"]

_SAFE_REPLICATION = 3
_BOUNDS = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found."""

    topology: Topology
    brokers: int
    plans: list[TopicPlan]
    topics: Mapping[str, TopicState | None]
    committed: Mapping[str, Mapping[TopicPartition, int]]
    ranges: Mapping[TopicPartition, tuple[int, int]]
    problems: list[Problem]


def verify(
    settings: Settings, on_undecided: Callable[[], None] = lambda: None
) -> tuple[int, list[Problem]]:
    """Return the documents' partition count (0: no such topic), and what is wrong.

    ``on_undecided``: see `Cluster`.

    Raises:
        BusError: the cluster doesn't answer within seconds, or refuses.
    """
    found = inspect(Cluster(settings.kafka_options(), on_undecided=on_undecided), settings)
    documents = found.topics[found.topology.documents]
    return documents.partitions if documents is not None else 0, found.problems


def inspect(cluster: Cluster, settings: Settings) -> Inspection:
    """Look at everything, in a few requests."""
    named = Topology.of(settings, 1)
    names = [one.name for one in plan(settings, named, DEFAULT_MAX_BYTES)]
    brokers, topics = cluster.topics(names)
    documents = topics[named.documents]
    topology = Topology.of(settings, documents.partitions if documents else 1)
    max_bytes = DEFAULT_MAX_BYTES
    if documents is not None:
        max_bytes = int(documents.settings.get("max.message.bytes", max_bytes))
    plans = list(plan(settings, topology, max_bytes))
    counts = {name: state.partitions for name, state in topics.items() if state is not None}
    wanted = {stage: inputs(topology, stage, counts) for stage in STAGES}
    # Route trails fingerprint, and both move on: asked first, it still does.
    committed = cluster.committed({topology.group("route"): wanted.pop("route")})
    committed |= cluster.committed({topology.group(one): places for one, places in wanted.items()})
    # And the logs' ends last: a group at work would seem to be past them.
    read = {topology.documents, *topology.internal()}
    ranges = cluster.ranges({name: count for name, count in counts.items() if name in read})
    problems = list(_layout(cluster, settings, topology, topics))
    if any(problem.what.startswith("index.shards") for problem in problems):
        # What these settings want of topics and groups is then beside the point.
        return Inspection(topology, brokers, plans, topics, committed, ranges, problems)
    problems += [problem for one in plans for problem in _topic(one, topics[one.name])]
    if documents is not None:
        problems += _bounds(topology, topics)
        problems += check_offsets(
            topology, counts, committed, ranges, skip_deleted=settings.documents.skip_deleted
        )
        if lost_answers(topology, committed, ranges):
            # What an open transaction holds back is on its way.
            written = cluster.ranges({name: counts[name] for name in read & set(counts)},
                                     committed=False)  # fmt: skip
            problems += lost_answers(topology, committed, written)
    problems.sort(key=lambda problem: problem.severity)
    return Inspection(topology, brokers, plans, topics, committed, ranges, problems)


def _layout(
    cluster: Cluster,
    settings: Settings,
    topology: Topology,
    topics: Mapping[str, TopicState | None],
) -> Iterator[Problem]:
    """Compare what the application's workers have agreed on with these settings."""
    if topics[topology.layout_log] is None or topics[topology.documents] is None:
        return
    found = recorded(cluster, topology)
    if found is None:
        yield Problem(
            "error", topology.layout_log, "what the workers agree on", "not recorded", "there",
            fix="neardup init",
        )  # fmt: skip
        return
    for one in differences(found, agreed(settings, topology)):
        yield Problem(
            "error", topology.layout_log, one.name, f"{one.here} here",
            f"{one.recorded}, as for all workers of {topology.app}",
            "workers that differ would judge the same documents differently" if one.by_choice
            else "workers that differ don't understand each other's frames",
            fix="neardup init --accept, if all workers are to use the settings given here"
            if one.by_choice else "for other parameters use another --app",
        )  # fmt: skip


def _topic(one: TopicPlan, state: TopicState | None) -> Iterator[Problem]:
    if state is None:
        yield Problem(
            "error" if one.required else "warning", one.name, "the topic", "missing", "there",
            fix="neardup topics create",
        )  # fmt: skip
        return
    if state.partitions != one.partitions:
        yield Problem(
            "error" if one.fixed_partitions else "warning",
            one.name,
            "its number of partitions",
            str(state.partitions),
            one.partitions_why,
            fix=one.partitions_fix,
        )
    for rule in one.rules:
        given = state.settings.get(rule.setting)
        if given is not None and not rule.holds(given):
            yield _broken(one.name, rule, given)
    yield from _replication(one.name, state)


def _broken(topic: str, rule: Rule, given: str) -> Problem:
    return Problem(
        rule.severity, topic, rule.setting, given, rule.takes, rule.why,
        _set(topic, rule.setting, rule.value),
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
            "nothing can be written", _set(topic, setting, str(max(1, state.replicas - 1))),
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
    """Compare what timestamps the outputs take with what the documents take."""
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
                    "a document may be refused for its time, and that stops the worker",
                    _set(name, bound, needed),
                )  # fmt: skip
