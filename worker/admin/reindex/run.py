"""Has the workers of an application build the next generation of the index, and take it up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import msgspec

from worker.admin.checks import inspect
from worker.admin.cluster import Cluster
from worker.admin.create import create
from worker.admin.plan import DEFAULT_MAX_BYTES
from worker.admin.plan import plan as topic_plans
from worker.admin.reindex.changes import Changed, aborted, begun, done, handed_over
from worker.admin.reindex.fingerprints import check_bands, check_sizes
from worker.admin.reindex.in_use import planned
from worker.admin.reindex.plan_log import change_plan
from worker.bus import TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.generations import Generation, Plan
from worker.settings import ConfigurationError, Settings
from worker.settings.duration import duration_ms
from worker.stages.turns import BUILDING
from worker.topology import Topology
from worker.wire import hand_over

__all__ = ["Progress", "Reindex", "changed_rules"]

_WAIT_SECONDS = 0.5
_UNCHANGED: Mapping[str, object] = {}
_MARKERS = 1
"""Offsets at the end of a log that hold no record: the marker of the last transaction."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a reindex is.

    Attributes:
        plan: what workers run.
        end: the end of the log of fingerprints.
        reached: how far each shard of the following generation has read, by number; None if no
            worker has begun it.
    """

    plan: Plan
    end: int
    reached: Mapping[int, int | None]

    @property
    def left(self) -> int:
        """Return how many offsets the slowest shard still has to read."""
        return max((self.end - (at or 0) for at in self.reached.values()), default=0)


def changed_rules(generation: Generation, **rules: object) -> Generation:
    """Return a generation with other rules.

    Without another value, ``absorb`` is raised to the threshold, as in the settings.
    """
    made = msgspec.structs.replace(generation, **rules)
    if "absorb" not in rules and made.absorb < made.threshold:
        made = msgspec.structs.replace(made, absorb=made.threshold)
    return made


class Reindex:
    """The steps of a reindex. Each can be taken again, by any process."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        """Look up the application.

        Raises:
            ConfigurationError: it can't run as it is.
            BusError: the cluster doesn't answer, or refuses.
        """
        self._cluster = cluster
        self._settings = settings
        self._bus = KafkaBus(cluster.options)
        found = inspect(cluster, settings)
        for problem in found.problems:
            if problem.severity == "error":
                raise ConfigurationError(f"{problem}; see `neardup topics verify`")
        self._replicas = {state.replicas for state in found.topics.values() if state is not None}
        plan = planned(cluster, settings) or Plan.of(settings)
        self._base_settings = plan.base.settings(settings)
        self._base = self._base_settings.topology(found.topology.layout.partitions)

    def plan(self) -> Plan:
        """Return the plan of generations."""
        return planned(self._cluster, self._settings) or Plan.of(self._settings)

    def _topology(self, generation: Generation) -> Topology:
        return generation.topology(self._base)

    def check(self, plan: Plan, following: Generation) -> None:
        """Check that a generation can be built from the fingerprints.

        Raises:
            ConfigurationError: it can't; the message says why, and what to do.
            BusError: the cluster doesn't answer.
        """
        current = plan.current
        if following == current:
            raise ConfigurationError("reindex: nothing would change; name what is to be different")
        if following.shards > following.bands:
            raise ConfigurationError(
                f"--shards: got {following.shards}, must be at most the number of bands,"
                f" {following.bands}"
            )
        if following.absorb < following.threshold:
            raise ConfigurationError(
                f"--absorb: got {following.absorb}, must be at least the threshold,"
                f" {following.threshold}"
            )
        check_sizes(plan.base, following, self._base.app)
        check_bands(current, following, self._settings.similarity, self._base.app)
        self._check_log(current, following)
        self._check_retention(following)

    def _check_log(self, current: Generation, following: Generation) -> None:
        if self._settings.index.snapshots.trim_log:
            raise ConfigurationError(
                "reindex: index.snapshots.trim_log deletes fingerprints that a new index is built"
                " from. Begin another application, with --app OTHER --from"
                f" app:{self._base.app}"
            )
        low, _ = self._order()
        if low and (current.window == "none" or _longer(following.window, current.window)):
            raise ConfigurationError(
                f"reindex: {self._base.fingerprints} begins at offset {low}, so a new index would"
                " lack what was in it before. Begin another application, with --app OTHER --from"
                f" app:{self._base.app}"
            )

    def _check_retention(self, following: Generation) -> None:
        """Check that brokers keep what the new window needs."""
        settings = following.settings(self._base_settings)
        name = self._base.fingerprints
        _, found = self._cluster.topics([name])
        state = found[name]
        for one in topic_plans(settings, self._base, DEFAULT_MAX_BYTES):
            for rule in one.rules if one.name == name else ():
                given = None if state is None else state.settings.get(rule.setting)
                if given is not None and rule.severity == "error" and not rule.holds(given):
                    raise ConfigurationError(
                        f"{name}: {rule.setting} is {given}, must be {rule.takes}: set it with"
                        f" kafka-configs.sh --alter --topic {name} --add-config"
                        f" {rule.setting}={rule.value}"
                    )

    def _order(self) -> tuple[int, int]:
        return self._cluster.ranges({self._base.fingerprints: 1})[self._base.order]

    def prepare(self, plan: Plan, following: Generation) -> None:
        """Create the topics of a generation, and set its group's offsets.

        Raises:
            BusError: the cluster refuses.
        """
        number = plan.used + 1
        made = msgspec.structs.replace(following, number=number)
        settings = made.settings(self._base_settings).reindexed(self._base_settings, number)
        create(self._cluster, settings, replication=min(self._replicas))
        topology = self._topology(made)
        seats = [TopicPartition(topology.seats, shard) for shard in range(made.shards)]
        group = topology.group("index")
        present = self._cluster.committed({group: seats})[group]
        missing = {seat: BUILDING for seat in seats if seat not in present}
        if missing:
            of = {topology.seats: topology.fingerprints}
            self._cluster.commit(group, missing, of=of)

    def begin(self, following: Generation) -> None:
        """Have workers build it, unless they do.

        Raises:
            ConfigurationError: another one is being built.
        """
        self._change(partial(begun, following=following))
        plan = self.plan()
        if plan.following is None or not _same(plan.following, following):
            raise ConfigurationError(
                "reindex: another one is under way; see `neardup reindex --status`"
            )

    def progress(self) -> Progress:
        """Return how far the workers are."""
        plan = self.plan()
        _, end = self._order()
        if plan.following is None:
            return Progress(plan, end, {})
        topology = self._topology(plan.following)
        offsets = self._seats(topology)
        reached = {
            shard: None if (at := offsets.get(shard, BUILDING)) == BUILDING else at % BUILDING
            for shard in range(plan.following.shards)
        }
        return Progress(plan, end, reached)

    def _seats(self, topology: Topology) -> dict[int, int]:
        seats = [TopicPartition(topology.seats, n) for n in range(topology.layout.shards)]
        group = topology.group("index")
        found = self._cluster.committed({group: seats})[group]
        return {seat.partition: offset for seat, offset in found.items()}

    def hand_over(self) -> None:
        """Have the generation that is built take over, unless it has."""
        self._change(partial(handed_over, base=self._base))

    def through(self) -> bool:
        """Return whether nothing of the generation in use is still to be published."""
        plan = self.plan()
        if plan.following is None or not plan.handed_over:
            return False
        old, new = self._topology(plan.current), self._topology(plan.following)
        # In this order: what the shards have answered is in the logs, and their ends are final.
        answered = self._seats(old)
        if len(answered) < old.layout.shards or not self._at_hand_over(old, new, answered):
            return False
        if any(offset >= BUILDING for offset in self._seats(new).values()):
            return False
        partitions = self._base.layout.partitions
        answers = {old.matches(shard): partitions for shard in range(old.layout.shards)}
        ends = self._cluster.ranges(answers, committed=False)
        following = [
            TopicPartition(new.matches(shard), number)
            for shard in range(new.layout.shards)
            for number in range(partitions)
        ]
        group = old.group("route")
        routed = self._cluster.committed({group: [*ends, *following]})[group]
        return all(place in routed for place in following) and all(
            high - routed.get(place, low) <= _MARKERS for place, (low, high) in ends.items()
        )

    def _at_hand_over(self, old: Topology, new: Topology, answered: Mapping[int, int]) -> bool:
        """Return whether the next record for every shard is the hand-over."""
        order = self._base.order
        low, high = self._order()
        start = max(low, min(answered.values()))
        with closing(self._bus.log_reader(old.group("index"), [order.topic])) as reader:
            reader.start(order, start)
            while (reader.position(order) or 0) < high:
                for record in reader.read(1, 1 << 20, _WAIT_SECONDS):
                    return hand_over(record.value, self._base.layout.id) == new.generation
        return False

    def finish(self) -> None:
        """Have workers leave the earlier generation."""
        self._change(done)

    def abort(self) -> bool:
        """Give up the generation that is being built; return False if it has taken over."""
        self._change(aborted)
        return self.plan().following is None

    def clean(self) -> Iterator[str]:
        """Delete the topics and groups of generations that nobody runs; yield their names.

        Raises:
            BusError: the cluster refuses, for example because a worker still is in a group.
        """
        plan = self.plan()
        for generation in plan.left:
            topology = self._topology(generation)
            self._cluster.delete_group(topology.group("index"))
            answers = [topology.matches(shard) for shard in range(generation.shards)]
            yield from self._cluster.delete([topology.seats, *answers])
        self._change(lambda found: (msgspec.structs.replace(found, left=()), ()))

    def _change(self, change: Callable[[Plan], Changed]) -> None:
        def changed(plan: Plan | None) -> Changed:
            return change(plan or Plan.of(self._base_settings))

        change_plan(self._bus, self._base.layout_log, changed)


def _same(one: Generation, other: Generation) -> bool:
    return msgspec.structs.replace(one, number=0) == msgspec.structs.replace(other, number=0)


def _longer(window: str, other: str) -> bool:
    """Return whether a window is longer than one that isn't ``none``."""
    return window == "none" or duration_ms(window) > duration_ms(other)
