"""Crashes at every step of a transaction, and outcomes that nobody was told."""

from collections.abc import Callable
from typing import get_args

import pytest

from worker.bus.memory import MemoryBus, MemoryMember, Step, Torn
from worker.bus.port import Aborted, Effect, Fenced, OutcomeUnknown, Outgoing, TopicPartition

IN, OTHER = TopicPartition("in", 0), TopicPartition("in", 1)
BATCH = [Outgoing("out", p, None, b"new") for p in (0, 1)]
STEPS: tuple[Step, ...] = get_args(Step)


class Crash(Exception):
    """The process is gone."""


def joined(bus: MemoryBus, instance: str = "0") -> MemoryMember:
    """Join the group, and see the assignment."""
    member = bus.join("g", ["in"], instance)
    member.poll(1, 1, 0)
    return member


def once(at: Step, act: Callable[[], object]) -> Callable[[Step, str, str], None]:
    """Give a hook that acts the first time a step is reached."""
    done: list[Step] = []

    def hook(step: Step, group: str, instance: str) -> None:
        if (step, group, instance) == (at, "g", "0") and not done:
            done.append(step)
            act()

    return hook


def throw(error: Exception) -> Callable[[], None]:
    """Give an action that raises."""

    def act() -> None:
        raise error

    return act


def visible(bus: MemoryBus) -> list[bytes | None]:
    """Give what readers of ``out`` see."""
    return [r.value for p in (0, 1) for r in bus.read("out", p, 0, 99)]


@pytest.fixture
def bus() -> MemoryBus:
    """Give a log with two partitions in and two out."""
    bus = MemoryBus()
    bus.create_topic("in", 2)
    bus.create_topic("out", 2)
    return bus


def test_the_steps_in_order(bus: MemoryBus) -> None:
    seen: list[str] = []
    bus.faults = lambda step, group, instance: seen.append(f"{step} {group}/{instance}")
    joined(bus).commit(BATCH, {IN: 1})
    steps = ["begin", "produce", "produce", "offsets", "commit", "committed"]
    assert seen == [f"{step} g/0" for step in steps]


@pytest.mark.parametrize("heir", ["the same name", "another member"])
@pytest.mark.parametrize("step", STEPS)
def test_a_crash(bus: MemoryBus, step: Step, heir: str) -> None:
    """All or nothing is left once the name is taken again, or has timed out."""
    dead = joined(bus)
    bus.faults = once(step, throw(Crash()))
    with pytest.raises(Crash):
        dead.commit(BATCH, {IN: 1})
    bus.append(Outgoing("out", 1, None, b"later"))
    held = step in {"offsets", "commit"}
    assert (b"later" in visible(bus)) is not held
    if heir == "the same name":
        after = joined(bus)
        with pytest.raises(Fenced):
            dead.commit(BATCH, {IN: 1})
    else:
        bus.evict("g", "0")
        after = joined(bus, "1")
    done = step == "committed"
    assert visible(bus) == [b"new"] * (2 * done) + [b"later"]
    assert after.committed([IN]) == {IN: 1 if done else None}
    after.commit(BATCH, {IN: 1})
    assert visible(bus).count(b"new") == (4 if done else 2)


@pytest.mark.parametrize("step", ["commit", "committed"])
def test_an_unknown_outcome(bus: MemoryBus, step: Step) -> None:
    """It took effect or not, and after renew the offsets tell which."""
    member = joined(bus)
    bus.faults = once(step, throw(OutcomeUnknown("timed out")))
    with pytest.raises(OutcomeUnknown):
        member.commit(BATCH, {IN: 1})
    member.renew()
    done = step == "committed"
    assert member.committed([IN]) == {IN: 1 if done else None}
    assert visible(bus) == [b"new"] * (2 * done)
    if not done:
        member.commit(BATCH, {IN: 1})
    assert visible(bus) == [b"new", b"new"]


@pytest.mark.parametrize("seen", [Aborted("rolled back"), OutcomeUnknown("timed out")])
@pytest.mark.parametrize("kept", [TopicPartition("out", 1), None])
def test_a_torn_transaction(
    bus: MemoryBus, kept: TopicPartition | None, seen: Aborted | OutcomeUnknown
) -> None:
    """It ends at once; a part of it stays, and later records are no longer held back."""
    member = joined(bus)
    bus.faults = once("commit", throw(Torn(lambda place: place == kept, seen)))
    with pytest.raises(type(seen)):
        member.commit(BATCH, {IN: 1})
    bus.append(Outgoing("out", 1, None, b"later"))
    assert visible(bus) == ([b"later"] if kept is None else [b"new", b"later"])
    assert member.committed([IN]) == {IN: 1 if kept is None else None}
    assert member.effect() == Effect([False, kept is not None], offsets=kept is None)
    member.renew()
    assert member.effect() == Effect([False, kept is not None], offsets=kept is None)
    member.commit(BATCH, {IN: 1})
    assert member.effect() == Effect()


def test_a_transaction_in_doubt_must_be_renewed_first(bus: MemoryBus) -> None:
    member = joined(bus)
    bus.faults = once("commit", throw(OutcomeUnknown()))
    with pytest.raises(OutcomeUnknown):
        member.commit(BATCH, {IN: 1})
    with pytest.raises(RuntimeError, match="renew first"):
        member.commit(BATCH, {IN: 1})
    with pytest.raises(RuntimeError, match="renew first"):
        member.committed([IN])


@pytest.mark.parametrize("step", STEPS[:-1])
def test_an_abort(bus: MemoryBus, step: Step) -> None:
    """It is rolled back when the caller learns of it, and the member goes on."""
    member = joined(bus)
    bus.faults = once(step, throw(Aborted()))
    with pytest.raises(Aborted):
        member.commit(BATCH, {IN: 1})
    bus.append(Outgoing("out", 0, None, b"later"))
    assert visible(bus) == [b"later"]
    member.commit(BATCH, {IN: 1})
    assert visible(bus) == [b"later", b"new", b"new"]


@pytest.mark.parametrize("step", STEPS[:-1])
def test_another_takes_the_name_in_the_middle(bus: MemoryBus, step: Step) -> None:
    ghost = joined(bus)
    bus.faults = once(step, lambda: joined(bus))
    with pytest.raises(Fenced):
        ghost.commit(BATCH, {IN: 1})
    assert visible(bus) == []
    assert bus.committed("g") == {}


@pytest.mark.parametrize("step", STEPS[:-1])
def test_a_rebalance_in_the_middle(bus: MemoryBus, step: Step) -> None:
    """The generation counts where the offsets join the transaction, as in Kafka."""
    member = joined(bus)
    bus.faults = once(step, lambda: joined(bus, "1"))
    if step == "commit":
        member.commit(BATCH, {IN: 1})
        assert bus.committed("g") == {IN: 1}
    else:
        with pytest.raises(Aborted):
            member.commit(BATCH, {IN: 1})
        assert visible(bus) == []


def test_offsets_of_another_members_open_transaction_are_waited_for(bus: MemoryBus) -> None:
    """That is: until it times out, for in one thread it can't go on."""
    dead = joined(bus)
    bus.faults = once("commit", throw(Crash()))
    with pytest.raises(Crash):
        dead.commit(BATCH, {IN: 1, OTHER: 1})
    other = joined(bus, "1")
    assert other.committed([OTHER]) == {OTHER: None}
    bus.append_many(Outgoing("out", p, None, b"later") for p in (0, 1))
    assert visible(bus) == [b"later", b"later"]


def test_a_commit_cannot_be_taken_back(bus: MemoryBus) -> None:
    transaction = bus.begin("p")
    transaction.append_many(BATCH)
    transaction.commit()
    with pytest.raises(RuntimeError, match="can't be aborted"):
        transaction.abort()
    with pytest.raises(Aborted, match="already committed"):
        transaction.append_many(BATCH)
