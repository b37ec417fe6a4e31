"""Has the workers of an application build the next generation of the index, and take it up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from time import sleep

import msgspec

from worker.admin.checks import inspect
from worker.admin.cluster import Cluster
from worker.admin.create import TooFewBrokers, create
from worker.admin.reindex.checking import (
    Checks,
    begun_with,
    changed_rules,
    numbered,
    numbers_follow,
    same_rules,
)
from worker.admin.reindex.in_use import planned
from worker.admin.reindex.progress import Catching, Positions, Progress, described
from worker.admin.reindex.topics import Grown, delete_left, grow, set_starts, starts
from worker.bus import BusError
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.groups import Offsets
from worker.generations.generation import Generation, Signing
from worker.generations.log import Transition, change_plan
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.visible import tell

_PAUSE_SECONDS = 1.0
_HURRY_SECONDS = 0.2
"""Between two looks while documents wait."""
_TOLD_EVERY_SECONDS = 10.0
"""Between two lines that say how far it is."""
_NONE: Mapping[str, Offsets] = {}


class Ended(Exception):
    """Another command has ended what this one waits for."""


class Reindex:
    """A reindex, in steps that can be taken again by any process."""

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
            self._begun_with, self._signing = begun_with(cluster, settings)
        plan = self.plan()
        base_settings = plan.base.settings(settings)
        found = inspect(cluster, base_settings if anew else settings)
        for problem in found.problems:
            if problem.severity == "error":
                way_on = problem.fix or "see `neardup topics verify`"
                raise ConfigurationError(f"{problem}; {way_on}")
        self._replicas = {state.replicas for state in found.topics.values() if state is not None}
        self._base = plan.base_topology(settings, found.topology.layout.partitions)
        self._at = Positions(cluster, self._bus, self._base)
        self.checks = Checks(cluster, settings, base_settings, self._base)

    def plan(self) -> Plan:
        """Return the plan of generations."""
        plan = planned(self._cluster, self._settings) or self._begun_with
        return plan if self._signing is None else plan.signed(self._signing)

    def progress(self) -> Progress:
        """Return how far the workers are."""
        return self._at.progress(self.plan())

    def begin(self, rules: Mapping[str, object]) -> None:
        """Have workers build an index with other rules, unless they do.

        If the settings are those of the next generation, they have all of its rules.

        Raises:
            ConfigurationError: it can't be built, or another one is being built.
            BusError: the cluster refuses, or has too few brokers at the moment.
        """
        plan = self.plan()
        following = self._wanted(plan, rules)
        if plan.following is None:
            following = self._prepared(plan, following)
        self._change(partial(Plan.start_build, following=following, signing=self._signing))
        plan = self.plan()
        if plan.following is None or not same_rules(plan.following, following):
            raise ConfigurationError(
                "reindex: another one is under way; see `neardup reindex --status`"
            )

    def carry_through(self) -> None:
        """Wait until the index is built, hand over to it, and leave the earlier one.

        Raises:
            ConfigurationError: the log in use has grown too much meanwhile.
            Ended: another command has ended it.
            BusError: the cluster doesn't answer, or refuses.
        """
        plan = self.plan()
        if plan.state != "taking over":
            self._build(plan)
            self._hand_over()
        tell("handed over; waiting until all that came before is published")
        if plan.rewriting:
            self._until(lambda one: self._written(one.plan), "handing over", _HURRY_SECONDS)
            self._begin_log()
        self._until(lambda one: self._at.through(one.plan), "handing over")
        self._change(Plan.finish)
        tell(
            f"done: {described(self.plan().current)} is in use. Put its rules into the settings,"
            " and run `neardup reindex --clean` to delete what is left of the earlier one"
        )

    def _wanted(self, plan: Plan, rules: Mapping[str, object]) -> Generation:
        """Return the generation that is to be built, or is being built if nothing else is said."""
        if self._signing is not None:
            return Generation.fingerprinted(self._settings)
        if plan.following is not None and not rules:
            return plan.following
        return changed_rules(plan.current, **rules)

    def _prepared(self, plan: Plan, following: Generation) -> Generation:
        """Return a checked generation with its numbers, once its topics and offsets are there."""
        source = plan.current.topology(self._base)
        if self._signing is None:
            self.checks.check(plan, following)
            made = msgspec.structs.replace(following, number=plan.used + 1)
        else:
            self.checks.check_anew(plan, following)
            for partition, low in self.checks.gone().items():
                tell(
                    f"partition {partition} of the documents begins at offset {low}: what was"
                    " before it is gone, and the new index won't know it"
                )
            made = numbered(plan, following, self._at.order(source)[1])
        in_use = msgspec.structs.replace(plan, current=made)
        try:
            create(self._cluster, self._settings, in_use, replication=min(self._replicas))
        except TooFewBrokers as few:
            raise BusError(
                f"topics with {few.replicas} replicas, as the application has, need that many"
                f" brokers, and {few.brokers} answered: run the command again once more are up"
            ) from few
        set_starts(self._cluster, source, made.topology(self._base))
        return made

    def _build(self, plan: Plan) -> None:
        """Wait until the next generation can take over."""
        tell(f"building {described(plan.following)}")
        current = plan.current.topology(self._base)
        following = (plan.following or plan.current).topology(self._base)
        shards = Catching(partial(self._at.empty, following))
        log = Catching(partial(self._at.empty, current))

        def built(progress: Progress) -> bool:
            return shards.up_to_date(progress.end, progress.reached.values())

        if not plan.rewriting:
            self._until(built, "building")
            return
        if plan.state == "building":
            # The shards come second: they can't be further than the log that they read.
            self._until(lambda one: log.up_to_date(one.source, [one.rewritten]), "building")
            self._until(built, "building")
            self._seal()
        tell("sealing the earlier fingerprints: documents that come now wait for the new ones")
        self._until(lambda _: self._at.sealed(current) is not None, "sealing", _HURRY_SECONDS)

    def _seal(self) -> None:
        """Have workers seal the log in use.

        Raises:
            ConfigurationError: it has grown so much that the next one can't number what follows.
        """
        plan = self.plan()
        current = plan.current.topology(self._base)
        end = self._at.order(current)[1]
        if plan.following is not None and not numbers_follow(plan.following, current, end):
            raise ConfigurationError(
                f"reindex: {current.fingerprints} has grown by more than the next log allows for;"
                " give that up with --abort, and begin another"
            )
        self._change(Plan.seal)

    def _hand_over(self) -> None:
        """Have the generation that is built take over, unless it has, or the log isn't sealed."""
        plan = self.plan()
        current = plan.current.topology(self._base)
        if plan.following is not None and (
            not plan.rewriting or self._at.sealed(current) is not None
        ):
            self._change(partial(Plan.hand_over, number=plan.following.number))

    def _written(self, plan: Plan) -> bool:
        """Return whether the new log has all that was in the earlier one."""
        if plan.following is None or plan.starts:
            return True
        return self._at.written(plan.following.topology(self._base))

    def _begin_log(self) -> None:
        """Have workers fingerprint documents for the new log, which has all of the earlier one."""
        plan = self.plan()
        reached = self._at.sealed(plan.current.topology(self._base))
        if plan.rewriting and reached is not None:
            self._change(partial(Plan.begin_log, starts=reached))

    def _until(
        self, holds: Callable[[Progress], bool], doing: str, pause: float = _PAUSE_SECONDS
    ) -> None:
        """Wait until something holds, and say from time to time how far it is."""
        for number in count(1):
            progress = self.progress()
            if progress.plan.following is None:
                raise Ended
            if holds(progress):
                return
            if number % round(_TOLD_EVERY_SECONDS / pause) == 0:
                tell(f"{doing}: {progress.left()}")
            sleep(pause)

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
        topology = plan.current.topology(self._base)
        grown = grow(self._cluster, plan, topology, partitions)
        if partitions > grown.read:
            # They are committed with the plan: whoever reads a partition has an offset of it.
            begin = starts(self._cluster, topology, partitions)
            self._change(partial(Plan.widen, read=grown.read, partitions=partitions), begin)
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
