"""Has the workers of an application build the next generation of the index, and take it up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial

import msgspec

from worker.admin.checks import inspect
from worker.admin.cluster import Cluster
from worker.admin.create import TooFewBrokers, create
from worker.admin.reindex import rewriting
from worker.admin.reindex.checking import Checks
from worker.admin.reindex.in_use import planned
from worker.admin.reindex.topics import Grown, delete_left, grow, starts
from worker.bus import BusError, Offset, TopicPartition, Unanswered, state_of
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.groups import Offsets
from worker.bus.ranges import read_ranges
from worker.generations.generation import Generation, Signing
from worker.generations.log import Transition, change_plan
from worker.generations.plan import Plan
from worker.generations.turns import WAITING, answers_yet
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.topology import Topology
from worker.wire.codec import hand_over

_LOOK_SECONDS = 10.0
_NONE: Mapping[str, Offsets] = {}
_MARKERS = 1
"""Offsets at the end of a log that hold no record: the marker of the last transaction."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a reindex is.

    Attributes:
        plan: what workers run.
        end: the end of the log of fingerprints that these read.
        reached: how far each shard of the following generation has read, by number; None if no
            worker has begun it.
        source: the end of the log in use, if the following generation has its own.
        rewritten: how far that one has new fingerprints.
    """

    plan: Plan
    end: int
    reached: Mapping[int, int | None]
    source: int = 0
    rewritten: int = 0

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

    def __init__(self, cluster: Cluster, settings: Settings, *, anew: bool = False) -> None:
        """Look up the application.

        With ``anew``, the settings are those of the next generation, which gets fingerprints of
        its own. Otherwise they are the application's.

        Raises:
            ConfigurationError: it can't run as it is.
            BusError: the cluster doesn't answer, or refuses.
        """
        self._cluster = cluster
        self._settings = settings
        self._bus = KafkaBus(cluster.options)
        self._signing: Signing | None = None
        self._begun_with = Plan.of(settings)
        if anew:
            self._begun_with, self._signing = rewriting.begun_with(cluster, settings)
        plan = self.plan()
        self._base_settings = plan.base.settings(settings)
        found = inspect(cluster, self._base_settings if anew else settings)
        for problem in found.problems:
            if problem.severity == "error":
                way_on = problem.fix or "see `neardup topics verify`"
                raise ConfigurationError(f"{problem}; {way_on}")
        self._replicas = {state.replicas for state in found.topics.values() if state is not None}
        self._base = plan.base_topology(settings, found.topology.layout.partitions)
        self.checks = Checks(cluster, settings, self._base_settings, self._base)

    def plan(self) -> Plan:
        """Return the plan of generations."""
        return self._whole(planned(self._cluster, self._settings))

    def _whole(self, plan: Plan | None) -> Plan:
        plan = plan or self._begun_with
        return plan if self._signing is None else plan.signed(self._signing)

    def _topology(self, generation: Generation) -> Topology:
        return generation.topology(self._base)

    def _order(self, topology: Topology) -> tuple[int, int]:
        return self._cluster.ranges({topology.fingerprints: 1})[topology.order]

    def prepare(self, plan: Plan, following: Generation, *, anew: bool = False) -> Generation:
        """Create the topics of a generation, and set its groups' offsets; return it.

        Raises:
            BusError: the cluster refuses, or has too few brokers at the moment.
        """
        source = self._topology(plan.current)
        made = msgspec.structs.replace(following, number=plan.used + 1)
        if anew:
            made = rewriting.numbered(plan, following, self._order(source)[1])
        in_use = msgspec.structs.replace(plan, current=made)
        try:
            create(self._cluster, self._settings, in_use, replication=min(self._replicas))
        except TooFewBrokers as few:
            raise BusError(
                f"topics with {few.replicas} replicas, as the application has, need that many"
                f" brokers, and {few.brokers} answered: run the command again once more are up"
            ) from few
        topology = self._topology(made)
        if anew:
            rewriting.set_starts(self._cluster, source, topology)
        seats = [TopicPartition(topology.seats, shard) for shard in range(made.shards)]
        group = topology.group("index")
        present = self._cluster.committed({group: seats})[group]
        start = Offset(self._order(topology)[0], WAITING)
        missing = {seat: start for seat in seats if seat not in present}
        if missing:
            of = {topology.seats: topology.fingerprints}
            self._cluster.commit(group, missing, of=of)
        return made

    def begin(self, following: Generation) -> None:
        """Have workers build it, unless they do.

        Raises:
            ConfigurationError: another one is being built.
        """
        self._change(partial(Plan.start_build, following=following, signing=self._signing))
        plan = self.plan()
        if plan.following is None or not _same(plan.following, following):
            raise ConfigurationError(
                "reindex: another one is under way; see `neardup reindex --status`"
            )

    def progress(self) -> Progress:
        """Return how far the workers are."""
        plan = self.plan()
        current = self._topology(plan.current)
        _, end = self._order(current)
        if plan.following is None:
            return Progress(plan, end, {})
        topology = self._topology(plan.following)
        source = rewritten = 0
        if plan.rewriting:
            source, rewritten = end, rewriting.rewritten(self._cluster, current, topology)
            _, end = self._order(topology)
        offsets = self._seats(topology)
        read = {shard: int(at) for shard, at in offsets.items() if state_of(at) != WAITING}
        reached = {shard: read.get(shard) for shard in range(plan.following.shards)}
        return Progress(plan, end, reached, source, rewritten)

    def _seats(self, topology: Topology) -> dict[int, int]:
        seats = [TopicPartition(topology.seats, n) for n in range(topology.layout.shards)]
        group = topology.group("index")
        found = self._cluster.committed({group: seats})[group]
        return {seat.partition: offset for seat, offset in found.items()}

    def nothing_for_shards(self, start: int, end: int) -> bool:
        """Return whether the shards of the following generation have no record to read there."""
        plan = self.plan()
        return self._nothing(self._topology(plan.following or plan.current), start, end)

    def nothing_to_rewrite(self, start: int, end: int) -> bool:
        """Return whether the log in use has no record there."""
        return self._nothing(self._topology(self.plan().current), start, end)

    def _nothing(self, topology: Topology, start: int, end: int) -> bool:
        """Return whether a log has no record from an offset on, before another one.

        Return False if it doesn't say so in time. Transactions of several writers may end one
        after the other, so several markers may follow its last record.
        """
        order = topology.order
        span = {order: (start, end)}
        with (
            closing(self._bus.log_reader(topology.group("index"), [order.topic])) as reader,
            suppress(Unanswered),
        ):
            return not any(True for _ in read_ranges(reader, span, limit=1, silence=_LOOK_SECONDS))
        return False

    def close(self) -> None:
        """Have workers seal the log in use, if the following generation has its own.

        Raises:
            ConfigurationError: it has grown so much that the next one can't number what follows.
        """
        plan = self.plan()
        current = self._topology(plan.current)
        if plan.following is not None and not rewriting.numbers_follow(
            plan.following, current, self._order(current)[1]
        ):
            raise ConfigurationError(
                f"reindex: {current.fingerprints} has grown by more than the next log allows for;"
                " give that up with --abort, and begin another"
            )
        self._change(Plan.seal)

    def sealed(self) -> bool:
        """Return whether that log is sealed in all partitions of the documents."""
        return rewriting.sealed(self._cluster, self._topology(self.plan().current)) is not None

    def hand_over(self) -> None:
        """Have the generation that is built take over, unless it has, or the log isn't sealed."""
        plan = self.plan()
        if plan.following is not None and (not plan.rewriting or self.sealed()):
            self._change(partial(Plan.hand_over, number=plan.following.number))

    def written(self) -> bool:
        """Return whether the new log has all that was in the earlier one."""
        plan = self.plan()
        if plan.following is None or plan.starts:
            return True
        return rewriting.written(self._bus, self._topology(plan.following))

    def direct(self) -> None:
        """Have workers fingerprint documents for the new log, which has all of the earlier one."""
        plan = self.plan()
        starts = rewriting.sealed(self._cluster, self._topology(plan.current))
        if plan.rewriting and starts is not None:
            self._change(partial(Plan.begin_log, starts=starts))

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
        answering = [offset for offset in self._seats(new).values() if answers_yet(offset)]
        if len(answering) < new.layout.shards:
            return False
        if plan.rewriting and not rewriting.begun(self._cluster, new):
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
        order = old.order
        low, high = self._order(old)
        following = {order: (max(low, min(answered.values())), high)}
        with closing(self._bus.log_reader(old.group("index"), [order.topic])) as reader:
            for record in read_ranges(reader, following, limit=1):
                return hand_over(record.value, old.layout.id) == new.generation
        return False

    def finish(self) -> None:
        """Have workers leave the earlier generation."""
        self._change(Plan.finish)

    def abort(self) -> bool:
        """Give up the generation that is being built; return False if it has taken over."""
        self._change(Plan.abort)
        return self.plan().following is None

    def widen(self, partitions: int) -> Grown:
        """Have workers read so many partitions of the documents, and add those that are missing.

        Raises:
            ConfigurationError: see `grow`; or another command has changed the plan meanwhile.
            BusError: the cluster doesn't answer, or refuses.
        """
        plan = self.plan()
        topology = self._topology(plan.current)
        grown = grow(self._cluster, plan, topology, partitions)
        if partitions > grown.read:
            # They are committed with the plan: whoever reads a partition has an offset of it.
            begin = starts(self._cluster, topology, partitions)
            change = partial(Plan.widen, read=grown.read, partitions=partitions)
            self._change(change, begin)
            if self.plan().partitions != partitions:
                raise ConfigurationError(
                    "--partitions: another command has changed what workers run; see `neardup"
                    " reindex --status`, and run it again"
                )
        return grown

    def clean(self) -> Iterator[str]:
        """Delete the topics and groups of generations that nobody runs; yield their names.

        Raises:
            BusError: the cluster refuses, for example because a worker still is in a group.
        """
        plan = self.plan()
        yield from delete_left(self._cluster, plan, self._base)
        self._change(partial(Plan.clean, deleted=plan.left))

    def _change(self, transition: Transition, offsets: Mapping[str, Offsets] = _NONE) -> None:
        change_plan(self._bus, self._base, self._begun_with, transition, offsets)


def _same(one: Generation, other: Generation) -> bool:
    """Return whether two generations have the same rules, and fingerprints made the same way."""
    plain = {"number": 0, "log": 0, "numbered_from": 0}
    return msgspec.structs.replace(one, **plain) == msgspec.structs.replace(other, **plain)
