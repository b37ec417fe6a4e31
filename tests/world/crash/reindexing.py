"""A world in which the index is replaced by its next generation while documents come."""

from __future__ import annotations

from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from tests.support.checker import check, differences
from tests.support.checker.history import History, Source, Verdict, verdicts
from tests.support.life import Life
from tests.world.crash.proof import Oracle
from tests.world.measures import Measures
from tests.world.world import Died, World
from worker.bus import Fenced, Offset, TopicPartition
from worker.bus.memory.transaction import Step
from worker.generations.generation import Generation
from worker.generations.log import FollowedPlan, Transition, change_plan
from worker.generations.plan import Plan
from worker.generations.turns import WAITING, answers_yet
from worker.topology import Topology
from worker.wire.frame import POSITION_BITS

BUILT_ROUNDS: Final = 200


class ReindexedWorld(World):
    """A world whose operator reindexes.

    Workers that are awake see the plan before each round, those that start see it at once.

    Attributes:
        blind: the workers that don't look at the plan for now.
        operator_steps: how many steps of transactions the operator's command has taken.
        operator_dies_at: the one before which it is killed; the operator then runs it again.
        operator_died: whether it was.
    """

    def __init__(self, directory: Path, measures: Measures | None = None) -> None:
        """Make the topic of the plan, too."""
        super().__init__(directory, measures)
        self.bus.create_topic(self.topology.layout_log, 1)
        self._generations = [Generation.of(self.settings)]
        self.blind: set[str] = set()
        self.operator_steps = 0
        self.operator_dies_at: int | None = None
        self.operator_died = False

    def plan(self) -> Plan:
        """Give the plan as the log has it."""
        with closing(FollowedPlan(self.bus, self.topology.layout_log)) as followed:
            return followed.look() or Plan.of(self.settings)

    def topologies(self) -> list[Topology]:
        """See the base class."""
        return [one.topology(self.topology) for one in self._generations]

    def rounds(self, number: int) -> bool:
        """Let workers look at the plan, and give every stage of all a step, so many times."""
        busy = False
        for _ in range(number):
            plan = self.plan()
            for life in list(self.lives.values()):
                if life.name not in self.blind and not (
                    life.asleep or life.over or life.plan == plan
                ):
                    with self._fate_of(life):
                        self._have_follow(life, plan)
                    busy = True
            busy |= super().rounds(1)
        return busy

    def _have_follow(self, life: Life, plan: Plan) -> None:
        try:
            life.follow(plan)
        except Fenced:
            assert life.superseded, f"{life.name} was fenced by nobody"
            self._bury(life)

    def _on_transaction(self, step: Step, group: str, instance: str) -> None:
        if group:
            super()._on_transaction(step, group, instance)
            return
        self.operator_steps += 1
        if self.operator_steps == self.operator_dies_at:
            raise Died

    # What the operator does.

    def build(self, **rules: float | None) -> None:
        """Have the next generation built, with rules other than those in use."""
        plan = self.plan()
        next_one = msgspec.structs.replace(plan.current, number=plan.used + 1, **rules)
        topology = next_one.topology(self.topology)
        inputs = {**topology.inputs("index"), **topology.inputs("route")}
        for topic, partitions in inputs.items():
            if topic != topology.documents:
                self.bus.create_topic(topic, partitions)
        seats = [TopicPartition(topology.seats, shard) for shard in range(next_one.shards)]
        start = Offset(self.bus.start_offset(*topology.order), WAITING)
        self.bus.commit_offsets(
            topology.group("index"), dict.fromkeys(seats, start), of=topology.fingerprints
        )
        self._generations.append(next_one)
        self._change(partial(Plan.start_build, following=next_one))

    def hand_over(self) -> None:
        """Have it take over."""
        self._change(Plan.hand_over)

    def complete(self) -> None:
        """Have the earlier generation left, once it is no longer needed."""
        for _ in range(BUILT_ROUNDS):
            if self.through():
                break
            self.rounds(1)
        assert self.through(), self.positions()
        self._change(Plan.finish)

    def abort(self) -> None:
        """Give up the generation that is being built."""
        self._change(Plan.abort)

    def _change(self, transition: Transition) -> None:
        change = partial(change_plan, self.bus, self.topology, Plan.of(self.settings), transition)
        with suppress(Died):
            change()
            return
        self.operator_died = True
        self.rounds(2)
        change()

    def through(self) -> bool:
        """Tell whether nothing of the generation in use is still to be published."""
        plan = self.plan()
        assert plan.following is not None
        old, new = (one.topology(self.topology) for one in plan.generations())
        begun = self.bus.committed(new.group("index"))
        if any(offset is None or not answers_yet(offset) for offset in begun.values()):
            return False
        ended = self.bus.committed(old.group("index"))
        log = self.archive.log(old)
        hand_over = log.hand_overs[new.generation]
        last = max((r.offset + 1 for r in log.frames if r.offset < hand_over), default=0)
        if any((offset or 0) < last for offset in ended.values()):
            return False
        routed = self.bus.committed(new.group("route"))
        partitions = self.topology.layout.partitions
        places = [
            TopicPartition(topic, n)
            for topic in old.inputs("route")
            for n in range(partitions)
            if topic != old.documents
        ]
        news = [
            TopicPartition(topic, n) for topic in new.inputs("route") for n in range(partitions)
        ]
        return all(self.bus.end_offset(*at) - (routed[at] or 0) <= 1 for at in places) and all(
            routed.get(at) is not None for at in news
        )

    # What it comes to.

    def problems(self, oracle: Oracle) -> list[str]:
        """Check all invariants, and verdicts and shards against those of each generation."""
        history = self.history()
        found = self.invariants(history)
        expected: dict[Source, Verdict] = {}
        for generation in self._generations:
            since = self.archive.hand_overs.get(
                generation.number, 0 if not generation.number else None
            )
            if since is None:
                continue
            topology = generation.topology(self.topology)
            replayed = oracle.replayed(
                self.archive.log(topology).frames, generation.settings(self.settings), topology
            )
            since += topology.layout.numbered_from
            expected |= {
                at: verdict
                for at, verdict in replayed.items()
                if verdict.sequence >> POSITION_BITS >= since
            }
        found += differences(verdicts(history), expected)
        current = self.plan().current
        return [
            *found,
            *oracle.index_problems(
                self, current.settings(self.settings), current.topology(self.topology)
            ),
        ]

    def invariants(self, history: History) -> list[str]:
        """Check what holds whichever generation has judged."""
        return check(history)

    def misjudged_by_the_other(self, oracle: Oracle) -> tuple[int, int]:
        """Give how many verdicts before and after the hand-over the two generations differ on."""
        old, new = (
            oracle.replayed(
                self.archive.fingerprints, one.settings(self.settings), one.topology(self.topology)
            )
            for one in self._generations
        )
        hand_over = self.archive.hand_overs[self._generations[-1].number]
        numbers = [old[at].sequence >> POSITION_BITS for at in old if old[at] != new[at]]
        before = sum(number < hand_over for number in numbers)
        return before, len(numbers) - before
