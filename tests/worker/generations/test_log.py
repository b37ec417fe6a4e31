"""The plan of generations in its topic."""

from __future__ import annotations

from contextlib import closing
from functools import partial

import msgspec
import pytest

from worker.bus import Aborted, BusError, OutcomeUnknown, Outgoing
from worker.bus.memory.bus import MemoryBus
from worker.bus.memory.transaction import Step
from worker.generations.generation import Generation
from worker.generations.log import FollowedPlan, Transition, change_plan, dump, load
from worker.generations.plan import Plan
from worker.settings.loading import load as settings_of
from worker.wire.codec import hand_over

SETTINGS = settings_of(None, {"app": "a"})
BASE = SETTINGS.topology(1)
FIRST = Plan.of(SETTINGS)
NEXT = msgspec.structs.replace(Generation.of(SETTINGS), shards=5)


@pytest.fixture
def bus() -> MemoryBus:
    made = MemoryBus()
    made.create_topic(BASE.layout_log, 1)
    made.create_topic(BASE.fingerprints, 1)
    return made


def change(bus: MemoryBus, step: Transition) -> Plan | None:
    return change_plan(bus, BASE, FIRST, step)


def recorded(bus: MemoryBus) -> Plan | None:
    with closing(FollowedPlan(bus, BASE.layout_log)) as followed:
        return followed.look()


def taken_over(bus: MemoryBus) -> list[int | None]:
    log = bus.read(BASE.fingerprints, 0, 0, 100)
    return [hand_over(record.value, BASE.layout.id) for record in log]


def test_a_plan_is_what_was_written() -> None:
    plan = FIRST.start_build(NEXT).hand_over().finish().start_build(NEXT)
    assert load(dump(plan)) == plan


def test_a_plan_of_a_later_version_is_refused() -> None:
    with pytest.raises(BusError, match="upgrade this neardup"):
        load(b'{"base": {}}')


def test_each_step_is_taken_once_however_often_it_is_tried(bus: MemoryBus) -> None:
    assert recorded(bus) is None
    for _ in range(2):
        change(bus, partial(Plan.start_build, following=NEXT))
    assert recorded(bus) == FIRST.start_build(NEXT)
    for _ in range(2):
        change(bus, Plan.hand_over)
    assert taken_over(bus) == [1]
    assert change(bus, Plan.abort) is None
    for _ in range(2):
        change(bus, Plan.finish)
    plan = recorded(bus)
    assert plan is not None
    assert (plan.current.shards, plan.following) == (5, None)


def test_only_what_a_command_has_waited_for_is_handed_over(bus: MemoryBus) -> None:
    change(bus, partial(Plan.start_build, following=NEXT))
    assert change(bus, partial(Plan.hand_over, number=2)) is None
    change(bus, Plan.abort)
    words = settings_of(None, {"app": "a", "similarity.shingle": "word"})
    anew = msgspec.structs.replace(Generation.fingerprinted(words), log=2)
    change(bus, partial(Plan.start_build, following=anew))
    assert change(bus, partial(Plan.hand_over, number=1)) is None
    assert change(bus, partial(Plan.hand_over, number=2)) is None, "it isn't sealed"
    assert taken_over(bus) == []


def test_a_log_of_its_own_takes_more_steps_and_each_once(bus: MemoryBus) -> None:
    words = settings_of(None, {"app": "a", "similarity.shingle": "word"})
    anew = msgspec.structs.replace(Generation.fingerprinted(words), number=1, log=1)
    signing = Generation.fingerprinted(SETTINGS).signing
    for step in (
        partial(Plan.start_build, following=anew, signing=signing),
        Plan.seal,
        Plan.hand_over,
        partial(Plan.begin_log, starts=[7]),
    ):
        changed = change(bus, step)
        assert changed is not None
        assert change(bus, step) is None
        if step is Plan.seal:
            assert change(bus, Plan.abort) is None
            assert change(bus, partial(Plan.begin_log, starts=[7])) is None
    assert taken_over(bus) == [1]
    plan = recorded(bus)
    assert plan is not None
    assert (plan.closing, plan.starts, plan.base.signing) == (True, (7,), signing)
    change(bus, Plan.finish)
    bus.create_topic(anew.topology(BASE).fingerprints, 1)
    change(bus, partial(Plan.start_build, following=msgspec.structs.replace(anew, shards=5)))
    assert change(bus, Plan.seal) is None
    change(bus, Plan.hand_over)
    assert taken_over(bus) == [1]
    [marker] = bus.read("a.g1.fingerprints", 0, 0, 100)
    assert hand_over(marker.value, anew.topology(BASE).layout.id) == 2


def test_what_was_given_up_does_not_take_over(bus: MemoryBus) -> None:
    change(bus, partial(Plan.start_build, following=NEXT))
    change(bus, Plan.abort)
    assert change(bus, Plan.hand_over) is None
    assert taken_over(bus) == []


@pytest.mark.parametrize("error", [Aborted, OutcomeUnknown])
@pytest.mark.parametrize("at", ["commit", "committed"])
def test_a_transaction_in_doubt_is_looked_up(
    bus: MemoryBus, monkeypatch: pytest.MonkeyPatch, error: type[Exception], at: Step
) -> None:
    change(bus, partial(Plan.start_build, following=NEXT))
    monkeypatch.setattr("worker.generations.log._PAUSE_SECONDS", 0.0)
    failed: list[str] = []

    def fail(step: Step, group: str, instance: str) -> None:
        del group, instance
        if step == at and not failed:
            failed.append(step)
            raise error("struck")

    bus.faults = fail
    change(bus, Plan.hand_over)
    assert failed
    assert taken_over(bus) == [1]
    plan = recorded(bus)
    assert plan is not None
    assert plan.handed_over


def test_what_was_written_can_be_read_when_the_change_is_made(
    bus: MemoryBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers may show what was committed a little later."""
    shown: list[Plan | None] = []

    def late(bus: MemoryBus, _topic: str) -> Plan | None:
        shown.append(None if len(shown) < 3 else recorded(bus))
        return shown[-1]

    monkeypatch.setattr("worker.generations.log._recorded", late)
    monkeypatch.setattr("worker.generations.log._LOOK_SECONDS", 0.0)
    change(bus, partial(Plan.start_build, following=NEXT))
    assert shown == [None, None, None, FIRST.start_build(NEXT)]


def test_a_worker_sees_the_latest_plan_first_and_then_each_change(bus: MemoryBus) -> None:
    change(bus, partial(Plan.start_build, following=NEXT))
    change(bus, Plan.hand_over)
    bus.append(Outgoing(BASE.layout_log, 0, b"layout", b"{}"))
    followed = FollowedPlan(bus, BASE.layout_log)
    first = followed.look()
    assert first is not None
    assert first.handed_over
    change(bus, Plan.finish)
    last = followed.look()
    assert last is not None
    assert last.following is None


def test_a_follower_reads_on_after_compaction(bus: MemoryBus) -> None:
    change(bus, partial(Plan.start_build, following=NEXT))
    followed = FollowedPlan(bus, BASE.layout_log)
    followed.look()
    change(bus, Plan.hand_over)
    change(bus, Plan.finish)
    bus.trim(BASE.layout_log, 0, bus.read(BASE.layout_log, 0, 0, 9)[-1].offset)
    found = [followed.look() for _ in range(2)][-1]
    assert found is not None
    assert found.following is None
