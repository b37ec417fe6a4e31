"""Mistakes that a worker of this kind may make: each is found.

A mistake is made by wrapping the product's own parts in the test. The same faults befall
a worker that doesn't make it, and nothing is found: so what is found is the mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pytest

from tests.crash.conftest import MakeWorld
from tests.crash.life import Life
from tests.crash.points import Fault, Point, Strike
from tests.crash.proof import Oracle
from tests.crash.texts import near_copies, slices
from tests.crash.world import World
from worker.bus.memory import MemoryBus
from worker.bus.port import (
    Aborted,
    Member,
    OutcomeUnknown,
    Outgoing,
    Record,
    TopicPartition,
)
from worker.stages import Burst, StageError

Offsets = Mapping[TopicPartition, int]
Mistake = Callable[[Life, MemoryBus], None]
Commit = Callable[[Iterable[Outgoing], Offsets], None]


def replace_commit(member: Member, commit: Commit) -> None:
    setattr(member, "commit", commit)  # noqa: B010 -- in place of a method


def offsets_before_outputs(life: Life, bus: MemoryBus) -> None:
    """Two transactions: the offsets first. Whoever dies between them loses the outputs."""
    del bus
    for loop in life.loops.values():
        member = loop._member
        commit = member.commit

        def apart(records: Iterable[Outgoing], offsets: Offsets, commit: Commit = commit) -> None:
            records = list(records)
            commit([], offsets)
            commit(records, {})

        replace_commit(member, apart)


def state_before_commit(life: Life, bus: MemoryBus) -> None:
    """What was decided is written at once, and the offset when the transaction has committed.

    Whoever is rolled back finds documents in the index that it is about to judge.
    """
    del bus
    index = life.index
    process = index.process

    def eager(records: Sequence[Record], room: int) -> Burst | None:
        burst = process(records, room)
        for partition, pending in index._pending.items():
            store, decision = index._stores.owned[partition].store, pending.decision
            store.write(decision.writes, offset=store.offset, now=store.now, documents=0)
            decision.writes = store.batch()
        return burst

    setattr(index, "process", eager)  # noqa: B010 -- in place of a method


def no_rebuild_after_doubt(life: Life, bus: MemoryBus) -> None:
    """An unknown outcome is taken for a commit; the committed offsets aren't asked for."""
    del bus
    for loop in life.loops.values():
        member = loop._member
        commit = member.commit

        def hopeful(
            records: Iterable[Outgoing],
            offsets: Offsets,
            member: Member = member,
            commit: Commit = commit,
        ) -> None:
            try:
                commit(records, offsets)
            except OutcomeUnknown:
                member.renew()

        replace_commit(member, hopeful)


def commit_after_lost(life: Life, bus: MemoryBus) -> None:
    """Who has lost its partitions still ends what it had begun, as on an orderly revoke.

    Without the group's generation, which would have it refused: a plain producer's.
    """
    for loop in life.loops.values():
        member = loop._member
        commit = member.commit
        group = f"neardup.{loop.stage.name}"

        def late(
            records: Iterable[Outgoing],
            offsets: Offsets,
            commit: Commit = commit,
            group: str = group,
        ) -> None:
            records = list(records)
            try:
                commit(records, offsets)
            except Aborted:
                transaction = bus.begin(f"{life.name}-{group}")
                transaction.append_many(records)
                transaction.commit_offsets(group, offsets)
                transaction.commit()

        replace_commit(member, late)


def two_workers(world: World) -> None:
    world.start("a")
    world.start("b")
    for some in slices(near_copies(40, 5), 16):
        world.feed(some)
        world.rounds(4)


def outcome(world: World, mistake: Mistake | None, strike: Strike, oracle: Oracle) -> list[str]:
    """Give what is found, by the invariants or by the stages themselves."""
    if mistake is not None:
        world.mistake = mistake
    world.nemesis.arm(strike)
    stopped = []
    try:
        two_workers(world)
        world.finish(idle_seconds=0.2)
    except (StageError, TimeoutError) as error:
        stopped.append(str(error))
    assert world.nemesis.struck == [strike]
    return [*oracle.problems(world), *stopped]


@pytest.mark.parametrize(
    ("mistake", "stage", "at", "nth", "fault", "problem"),
    [
        (offsets_before_outputs, "fingerprint", "commit", 4, "dies", "gap before frame"),
        (offsets_before_outputs, "sequence", "commit", 2, "dies", "frame was lost"),
        (offsets_before_outputs, "index", "commit", 2, "dies", "frame was lost"),
        (offsets_before_outputs, "route", "commit", 2, "dies", "is on no output"),
        (state_before_commit, "index", "commit", 2, "aborted", "which is not before it"),
        (no_rebuild_after_doubt, "fingerprint", "commit", 2, "unknown", "gap before frame"),
        (no_rebuild_after_doubt, "sequence", "commit", 2, "unknown", "frame was lost"),
        (no_rebuild_after_doubt, "index", "commit", 2, "unknown", "frame was lost"),
        (no_rebuild_after_doubt, "route", "commit", 3, "unknown", "is on no output"),
        (commit_after_lost, "fingerprint", "offsets", 2, "evicted", "overlap before frame"),
        (commit_after_lost, "sequence", "offsets", 2, "evicted", "frame was lost or doubled"),
        (commit_after_lost, "index", "offsets", 2, "evicted", "frame was lost or doubled"),
        (commit_after_lost, "route", "offsets", 3, "evicted", "is on ["),
    ],
)
def test_a_mistake_is_found(  # noqa: PLR0913, PLR0917 -- a row of the table
    world: MakeWorld,
    oracle: Oracle,
    mistake: Mistake,
    stage: str,
    at: str,
    nth: int,
    fault: Fault,
    problem: str,
) -> None:
    strike = Strike(Point("a", stage, at), nth, fault)
    assert outcome(world(), None, strike, oracle) == []
    found = outcome(world(), mistake, strike, oracle)
    assert any(problem in one for one in found), found
