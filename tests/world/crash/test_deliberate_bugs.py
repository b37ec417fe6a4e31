"""Mistakes that a worker of this kind may make: each is found.

A mistake is made by wrapping, by their published names, what the product is made of. The same
faults befall a worker that doesn't make it, and nothing is found: so what is found is the mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from lsh._core import Decision
from tests.support.breadth import slow
from tests.support.life import Life
from tests.support.points import DONE, Fault, Point, Strike
from tests.support.texts import near_copies, slices
from tests.world.conftest import Make
from tests.world.crash.proof import Oracle
from tests.world.world import World
from worker.bus import (
    Aborted,
    AnyOutgoing,
    Effect,
    OutcomeUnknown,
    Outgoing,
    RecordBatch,
    TopicPartition,
    each,
)
from worker.bus.memory.bus import MemoryBus
from worker.bus.memory.member import MemoryMember
from worker.bus.records import NO_EPOCHS
from worker.corrections.request import Allow
from worker.corrections.state import Corrections
from worker.index.store import BandStore
from worker.stages.base import Burst, StageError

Offsets = Mapping[TopicPartition, int]
Mistake = Callable[[World], None]
Commit = Callable[[Iterable[Outgoing], Offsets], None]


def replace_commits(bus: MemoryBus, by: Callable[[MemoryMember, str, str], Commit]) -> None:
    """Have all who join from now on commit in another way; it knows their group and name."""
    join = bus.join

    def joined(
        group: str,
        topics: Sequence[str],
        instance: str,
        *,
        compress: bool = True,
        of: str | None = None,
    ) -> MemoryMember:
        member = join(group, topics, instance, compress=compress, of=of)
        setattr(member, "commit", by(member, group, instance))  # noqa: B010 -- in place of a method
        return member

    setattr(bus, "join", joined)  # noqa: B010 -- in place of a method


def offsets_before_outputs(world: World) -> None:
    """Two transactions: the offsets first. Whoever dies between them loses the outputs."""

    def by(member: MemoryMember, group: str, instance: str) -> Commit:
        del group, instance
        commit = member.commit

        def apart(
            records: Iterable[Outgoing], offsets: Offsets, *, epochs: Offsets = NO_EPOCHS
        ) -> None:
            records = list(records)
            commit([], offsets, epochs=epochs)
            commit(records, {})

        return apart

    replace_commits(world.bus, by)


def state_before_commit(world: World) -> None:
    """What was decided is written at once, and the offset when the transaction has committed.

    Whoever is rolled back finds documents in the index that it is about to judge.
    """
    world.mistake = write_at_once


def write_at_once(life: Life) -> None:
    index = life.index
    process, committed = index.process, index.committed
    offsets: list[Callable[[], None]] = []

    def eager(
        batches: Sequence[RecordBatch], room: int, quiet: Mapping[TopicPartition, int]
    ) -> Burst:
        burst = process(batches, room, quiet)
        offsets.clear()
        with pytest.MonkeyPatch.context() as patch:
            for store in index.stores().values():
                patch.setattr(store, "apply", halved(store, offsets))
            committed()
        return burst

    def late() -> None:
        while offsets:
            offsets.pop()()

    setattr(index, "process", eager)  # noqa: B010 -- in place of a method
    setattr(index, "committed", late)  # noqa: B010 -- in place of a method


def halved(store: BandStore, offsets: list[Callable[[], None]]) -> Callable[..., None]:
    """Give what writes to a store all but the offset reached, and notes what writes that."""
    apply = store.apply

    def half(decision: Decision, **reached: Any) -> None:  # noqa: ANN401 -- the method's own
        apply(decision, offset=store.offset, documents=0)
        offsets.append(partial(apply, None, **reached))

    return half


def no_rebuild_after_doubt(world: World) -> None:
    """An unknown outcome is taken for a commit; the committed offsets aren't asked for."""

    def by(member: MemoryMember, group: str, instance: str) -> Commit:
        del group, instance
        commit = member.commit

        def hopeful(
            records: Iterable[Outgoing], offsets: Offsets, *, epochs: Offsets = NO_EPOCHS
        ) -> None:
            try:
                commit(records, offsets, epochs=epochs)
            except OutcomeUnknown:
                member.renew()

        return hopeful

    replace_commits(world.bus, by)


def no_completion(world: World) -> None:
    """A transaction is taken to be whole: nobody looks whether it ended the same way everywhere."""

    def by(member: MemoryMember, group: str, instance: str) -> Commit:
        del group, instance
        setattr(member, "effect", Effect)  # noqa: B010 -- in place of a method
        return member.commit

    replace_commits(world.bus, by)


def commit_after_lost(world: World) -> None:
    """Who has lost its partitions still ends what it had begun, as on an orderly revoke.

    Without the group's generation, which would have it refused: a plain producer's.
    """
    bus = world.bus

    def by(member: MemoryMember, group: str, instance: str) -> Commit:
        commit = member.commit

        def late(
            records: Iterable[AnyOutgoing], offsets: Offsets, *, epochs: Offsets = NO_EPOCHS
        ) -> None:
            sent = list(each(records))
            try:
                commit(sent, offsets, epochs=epochs)
            except Aborted:
                transaction = bus.begin(f"{instance}-{group}")
                transaction.append_many(sent)
                transaction.commit_offsets(group, offsets, of=member.of)
                transaction.commit()

        return late

    replace_commits(bus, by)


def corrections_in_memory(world: World) -> None:
    """What people have corrected is not written with the offset: a restart forgets it."""
    world.mistake = keep_corrections_in_memory


def keep_corrections_in_memory(life: Life) -> None:
    index = life.index
    committed = index.committed

    def in_memory() -> None:
        with pytest.MonkeyPatch.context() as patch:
            for store in index.stores().values():
                patch.setattr(store, "apply", partial(without_corrections, store))
            committed()

    setattr(index, "committed", in_memory)  # noqa: B010 -- in place of a method


def without_corrections(
    store: BandStore,
    decision: Decision | None,
    *,
    corrections: Corrections | None = None,
    **reached: Any,  # noqa: ANN401 -- the method's own
) -> None:
    BandStore.apply(store, decision, **reached)
    store.corrections = corrections or store.corrections


def two_workers(world: World) -> None:
    world.start("a")
    world.start("b")
    for some in slices(near_copies(40, 5), 16):
        world.feed(some)
        world.rounds(4)


def corrected_workers(world: World) -> None:
    world.start("a")
    world.start("b")
    for some in slices(near_copies(40, 5), 16):
        world.feed(some)
        world.correct(Allow(some[0][0], some[0][1]))
        world.rounds(4)
        world.feed([(f"again-{ident}", text) for ident, text in some[:3]])


def outcome(
    world: World,
    mistake: Mistake | None,
    strike: Strike,
    oracle: Oracle,
    play: Callable[[World], None] = two_workers,
) -> list[str]:
    """Give what is found, by the invariants or by the stages themselves."""
    if mistake is not None:
        mistake(world)
    world.nemesis.arm(strike)
    stopped = []
    try:
        play(world)
        world.finish(idle_seconds=0.2)
    except (StageError, TimeoutError) as error:
        stopped.append(str(error))
    assert world.nemesis.struck == [strike]
    return [*oracle.problems(world), *stopped]


@pytest.mark.parametrize(
    ("mistake", "stage", "at", "nth", "fault", "problem"),
    [
        slow(offsets_before_outputs, "fingerprint", "commit", 4, "dies", "gap before frame"),
        (offsets_before_outputs, "index", "commit", 2, "dies", "frame was lost"),
        slow(offsets_before_outputs, "route", "commit", 2, "dies", "is on no output"),
        (state_before_commit, "index", "commit", 2, "aborted", "which is not before it"),
        slow(no_rebuild_after_doubt, "fingerprint", "commit", 2, "unknown", "gap before frame"),
        slow(no_rebuild_after_doubt, "index", "commit", 2, "unknown", "frame was lost"),
        (no_rebuild_after_doubt, "route", "commit", 2, "unknown", "is on no output"),
        (no_completion, "fingerprint", "commit", 2, "torn, no offsets", "overlap before frame"),
        slow(no_completion, "fingerprint", "commit", 2, "torn, only offsets", "gap before frame"),
        slow(no_completion, "index", "commit", 2, "torn, no offsets", "lost or doubled"),
        slow(no_completion, "index", "commit", 2, "torn, only offsets", "lost or doubled"),
        slow(no_completion, "route", "commit", 2, "torn, no offsets", "is on ["),
        slow(no_completion, "route", "commit", 2, "torn, only offsets", "is on no output"),
        slow(no_completion, "route", "commit", 2, "torn, every other", "is on"),
        slow(commit_after_lost, "fingerprint", "offsets", 2, "evicted", "overlap before frame"),
        slow(commit_after_lost, "index", "offsets", 2, "evicted", "frame was lost or doubled"),
        (commit_after_lost, "route", "offsets", 2, "evicted", "is on ["),
    ],
)
def test_a_mistake_is_found(
    make: Make,
    oracle: Oracle,
    mistake: Mistake,
    stage: str,
    at: str,
    nth: int,
    fault: Fault,
    problem: str,
) -> None:
    strike = Strike(Point("a", stage, at), nth, fault)
    assert outcome(make(World), None, strike, oracle) == []
    found = outcome(make(World), mistake, strike, oracle)
    assert any(problem in one for one in found), found


def test_corrections_that_are_kept_in_memory_are_missed(make: Make, oracle: Oracle) -> None:
    strike = Strike(Point("a", "index", "flush" + DONE), 3, "dies")
    assert outcome(make(World), None, strike, oracle, corrected_workers) == []
    found = outcome(make(World), corrections_in_memory, strike, oracle, corrected_workers)
    assert any("and isn't allowed" in one for one in found), found
