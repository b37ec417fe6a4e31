"""The index gets new fingerprints, and nothing is lost, doubled or misjudged."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, get_args
from zlib import crc32

import pytest
from _pytest.mark import ParameterSet

from tests.support.corpus import FULL
from tests.support.points import DONE, Fault, Point, can_befall, strikes
from tests.support.texts import near_copies, slices
from tests.world.conftest import Make
from tests.world.crash.proof import Oracle
from tests.world.crash.rewriting import RewrittenWorld
from tests.world.measures import Measures

STAGES: Final = ("fingerprint", "refingerprint-g1", "fingerprint-g1", "index-g1", "route")
NAMES: Final = (
    *("begin", "produce", "offsets", "commit", "commit" + DONE, "renew"),
    *("look up", "adopt", "adopt" + DONE, "seek", "resume"),
)
OPERATOR_STEPS: Final = 21
"""Those of five transactions: the plan, the seal, the hand-over, the starts, and the end."""
HANDED_OVER: Final = 13
"""The step after which the hand-over has taken effect, and the command doesn't know it."""
FAULTS: Final = get_args(Fault)
MARKS: Final[dict[tuple[str, str, str], tuple[pytest.MarkDecorator, ...]]] = {
    ("refingerprint-g1", "commit" + DONE, "dies"): (pytest.mark.slow,),
    ("fingerprint-g1", "commit", "dies"): (),
}
"""All others are left to `make test-slow`."""
NEW: Final[dict[str, dict[str, Any]]] = {
    "similarity": {"shingle": "word", "shingle_size": 5, "slots": 64},
    "index": {"shards": 3},
}


def rewrite(world: RewrittenWorld) -> None:
    """Two workers, and documents before, during and after each step."""
    heaps = slices(near_copies(64, 5), 12, 8, 8, 8, 8, 8)
    world.start("a")
    world.feed(next(heaps))
    world.rounds(3)
    world.start("b")
    world.rounds(3)
    world.rewrite(**NEW)
    world.feed(next(heaps))
    world.rounds(3)
    world.feed(next(heaps))
    world.seal()
    world.feed(next(heaps))
    world.hand_over()
    world.rounds(1)
    world.direct()
    world.feed(next(heaps))
    world.complete()
    world.feed(next(heaps))
    world.rounds(2)
    world.feed(next(heaps))
    world.finish()


def test_verdicts_change_at_the_hand_over_and_nothing_is_lost(make: Make, oracle: Oracle) -> None:
    world = make(RewrittenWorld)
    rewrite(world)
    assert world.problems(oracle) == []
    assert world.judged_otherwise(oracle) > 0


@pytest.fixture(scope="module")
def trace(directory: Path) -> list[Point]:
    """Give all points of an undisturbed run."""
    with (
        tempfile.TemporaryDirectory(dir=directory) as place,
        closing(RewrittenWorld(Path(place))) as world,
    ):
        rewrite(world)
        assert world.operator_steps == OPERATOR_STEPS
        return world.nemesis.trace


def cases() -> Iterator[ParameterSet]:
    """Yield a twelfth of what can befall a stage at a point; with the full scale, all."""
    for stage in STAGES:
        for name in NAMES:
            for fault in FAULTS:
                if not can_befall(name, fault):
                    continue
                case = (stage, name, fault)
                if FULL or case in MARKS or _place(*case) % 12 == 0:
                    yield pytest.param(*case, marks=MARKS.get(case, (pytest.mark.slow(ci=False),)))


def _place(stage: str, name: str, fault: str) -> int:
    """Return a number that is the same in all runs."""
    return crc32(f"{stage} {name} {fault}".encode())


@pytest.mark.parametrize(("stage", "name", "fault"), list(cases()))
def test_a_fault_at_any_point(
    make: Make,
    oracle: Oracle,
    trace: list[Point],
    stage: str,
    name: str,
    fault: Fault,
) -> None:
    quarters: Sequence[int] = range(4)
    if not FULL:
        quarters = [_place(stage, name, fault) // 12 % 4]
    for strike in strikes(trace, stage, name, fault, quarters):
        world = make(RewrittenWorld)
        world.nemesis.arm(strike)
        rewrite(world)
        assert world.problems(oracle) == [], strike


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(step, marks=() if step == HANDED_OVER else pytest.mark.slow(ci=False))
        for step in range(1, OPERATOR_STEPS + 1)
        if FULL or step % 4 == HANDED_OVER % 4
    ],
)
def test_the_command_is_killed_and_run_again(make: Make, oracle: Oracle, step: int) -> None:
    world = make(RewrittenWorld)
    world.operator_dies_at = step
    rewrite(world)
    assert world.operator_died
    assert world.problems(oracle) == []


@pytest.mark.slow(ci=False)
@pytest.mark.parametrize("late", ["a", "b"])
def test_a_worker_that_sees_the_plan_late(make: Make, oracle: Oracle, late: str) -> None:
    """What it owns is sealed, and begun, only once it has seen that; the others go on."""
    world = make(RewrittenWorld, Measures(partitions=3))
    heaps = slices(near_copies(50, 6), 10, 8, 8, 8, 8)
    world.start("a")
    world.start("b")
    world.feed(next(heaps))
    world.rounds(4)
    world.blind.add(late)
    world.rewrite(**NEW)
    world.feed(next(heaps))
    world.rounds(6)
    world.blind.clear()
    world.rounds(4)
    world.blind.add(late)
    world.begin_to_seal()
    world.feed(next(heaps))
    world.rounds(6)
    assert not world.sealed()
    world.blind.clear()
    world.seal()
    world.blind.add(late)
    world.hand_over()
    world.rounds(2)
    world.direct()
    world.feed(next(heaps))
    world.rounds(6)
    world.blind.clear()
    world.complete()
    world.blind.add(late)
    world.feed(next(heaps))
    world.rounds(6)
    world.blind.clear()
    world.feed(next(heaps))
    world.finish()
    assert world.problems(oracle) == []


def test_a_worker_with_the_earlier_plan_holds_what_others_have_sealed(
    make: Make, oracle: Oracle
) -> None:
    world = make(RewrittenWorld, Measures(partitions=3))
    heaps = slices(near_copies(40, 4), 10, 10, 10)
    world.start("a")
    world.start("b")
    world.feed(next(heaps))
    world.rounds(4)
    world.rewrite(**NEW)
    world.rounds(4)
    world.blind.add("b")
    world.begin_to_seal()
    world.suffer("b", "evicted")
    assert world.sealed()
    world.feed(next(heaps))
    world.rounds(6)
    assert world.sealed()
    world.hand_over()
    world.direct()
    world.leave("a")
    world.feed(next(heaps))
    world.rounds(6)
    world.start("a")
    world.blind.clear()
    world.complete()
    world.feed(next(heaps))
    world.finish()
    assert world.problems(oracle) == []


@pytest.mark.parametrize(
    ("dies", "log"),
    [
        pytest.param(False, False, id="documents", marks=pytest.mark.slow(ci=False)),
        pytest.param(False, True, id="both", marks=pytest.mark.slow(ci=False)),
        pytest.param(True, False, id="documents, dies", marks=pytest.mark.slow(ci=False)),
        pytest.param(True, True, id="both, dies"),
    ],
)
def test_what_was_deleted_is_left_out_and_nothing_else_is_lost(
    make: Make, oracle: Oracle, *, dies: bool, log: bool
) -> None:
    world = make(RewrittenWorld)
    heaps = slices(near_copies(60, 3), 14, 10, 10, 10, 10)
    world.start("a")
    world.start("b")
    world.feed(next(heaps))
    world.rounds(8)
    assert world.delete_published() > 0
    if log:
        world.trim_log()
    world.rewrite(**NEW)
    world.feed(next(heaps))
    world.rounds(2)
    world.delete_published()
    if dies:
        world.suffer("a", "dies")
        world.suffer("b", "dies")
    world.feed(next(heaps))
    world.rounds(2)
    world.seal()
    world.hand_over()
    world.delete_published()
    world.direct()
    world.feed(next(heaps))
    world.complete()
    world.feed(next(heaps))
    world.finish()
    assert world.problems(oracle) == []
    assert world.left_out() > 0


@pytest.mark.slow(ci=False)
def test_what_was_given_up_leaves_nothing(make: Make, oracle: Oracle) -> None:
    world = make(RewrittenWorld)
    heaps = slices(near_copies(48, 8), 12, 12, 12)
    world.start("a")
    world.feed(next(heaps))
    world.rounds(3)
    world.rewrite(**NEW)
    world.feed(next(heaps))
    world.rounds(3)
    world.abort()
    world.hand_over()
    world.feed(next(heaps))
    world.rounds(3)
    world.rewrite(**NEW)
    world.rounds(2)
    world.seal()
    world.hand_over()
    world.direct()
    world.complete()
    world.feed(next(heaps))
    world.finish()
    assert list(world.archive.hand_overs) == [2]
    assert world.problems(oracle) == []


@pytest.mark.slow(ci=False)
def test_others_follow_on_new_fingerprints(make: Make, oracle: Oracle) -> None:
    """A generation that shares the new log, and one that has another log."""
    world = make(RewrittenWorld)
    heaps = slices(near_copies(60, 9), 15, 15, 15)
    world.start("a")
    world.feed(next(heaps))
    world.rewrite(**NEW)
    world.rounds(2)
    world.seal()
    world.hand_over()
    world.direct()
    world.complete()
    world.suffer("a", "dies, disk lost")
    world.feed(next(heaps))
    world.build(shards=1, threshold=0.6)
    world.rounds(2)
    world.hand_over()
    world.complete()
    world.feed(next(heaps))
    world.rewrite(similarity={"shingle_size": 4})
    world.rounds(2)
    world.seal()
    world.hand_over()
    world.direct()
    world.complete()
    world.suffer("a", "dies, disk lost")
    world.feed(next(heaps))
    world.finish()
    assert sorted(world.archive.hand_overs) == [1, 2, 3]
    assert world.problems(oracle) == []
