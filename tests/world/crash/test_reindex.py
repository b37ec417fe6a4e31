"""The index is replaced by its next generation, and nothing is lost, doubled or misjudged."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args
from zlib import crc32

import pytest
from _pytest.mark import ParameterSet

from tests.support.breadth import mostly_slow, slow
from tests.support.corpus import FULL
from tests.support.points import DONE, Fault, Point, can_befall, strikes
from tests.support.texts import excerpts, near_copies, slices
from tests.world.conftest import Make
from tests.world.crash.proof import Oracle
from tests.world.crash.reindexing import ReindexedWorld
from tests.world.measures import Measures

STAGES: Final = ("fingerprint", "index", "index-g1", "route")
NAMES: Final = (
    *("begin", "produce", "offsets", "commit", "commit" + DONE, "renew"),
    *("look up", "adopt", "adopt" + DONE, "seek", "resume"),
    *("open", "open" + DONE, "write", "write" + DONE, "flush" + DONE, "close", "close" + DONE),
)
OPERATOR_STEPS: Final = 13
"""Those of three transactions: the plan, the hand-over with the plan, and the end."""
FAULTS: Final = get_args(Fault)
MARKS: Final[dict[tuple[str, str, str], tuple[pytest.MarkDecorator, ...]]] = {
    ("index-g1", "commit", "dies"): (),
    ("index-g1", "commit" + DONE, "dies"): (pytest.mark.slow,),
    ("route", "commit" + DONE, "dies"): (pytest.mark.slow,),
}
"""All others are left to `make test-slow`."""
RULES: Final[dict[str, Any]] = {"shards": 3, "threshold": 0.6, "absorb": 0.8}


def reindex(
    world: ReindexedWorld,
    *,
    texts: Sequence[tuple[str, str]] = near_copies(60, 5),
    **rules: float | None,
) -> None:
    """Two workers, and documents before, during and after each step."""
    first, second, third, fourth, fifth, last = slices(texts, 12, 8, 8, 8, 8)
    world.start("a")
    world.feed(first)
    world.rounds(3)
    world.start("b")
    world.rounds(3)
    world.build(**rules)
    world.feed(second)
    world.rounds(3)
    world.feed(third)
    world.hand_over()
    world.feed(fourth)
    world.rounds(3)
    world.complete()
    world.feed(fifth)
    world.rounds(2)
    world.feed(last)
    world.finish()


@pytest.mark.parametrize(
    "rules",
    [
        slow({"shards": 4}),
        slow({"shards": 1}),
        {"shards": 3, "threshold": 0.6, "absorb": 0.8},
        {"threshold": 0.95, "bucket_capacity": 2},
    ],
    ids=str,
)
def test_verdicts_change_at_the_hand_over_and_nothing_is_lost(
    make: Make, oracle: Oracle, rules: dict[str, Any]
) -> None:
    world = make(ReindexedWorld)
    reindex(world, **rules)
    assert world.problems(oracle) == []
    before, after = world.misjudged_by_the_other(oracle)
    assert (before > 0, after > 0) == ("threshold" in rules,) * 2


@pytest.mark.parametrize(
    "containment", [None, pytest.param(0.95, marks=pytest.mark.slow(ci=False))]
)
def test_a_containment_changes_if_the_fingerprints_have_the_sizes_for_it(
    make: Make, oracle: Oracle, containment: float | None
) -> None:
    world = make(ReindexedWorld, Measures(containment=0.75))
    reindex(world, texts=excerpts(60, 5), containment=containment)
    assert world.problems(oracle) == []
    before, after = world.misjudged_by_the_other(oracle)
    assert min(before, after) > 0


@pytest.fixture(scope="module")
def trace(directory: Path) -> list[Point]:
    """Give all points of an undisturbed run."""
    with (
        tempfile.TemporaryDirectory(dir=directory) as place,
        closing(ReindexedWorld(Path(place))) as world,
    ):
        reindex(world, **RULES)
        assert world.operator_steps == OPERATOR_STEPS
        return world.nemesis.trace


def cases() -> Iterator[ParameterSet]:
    """Yield every stage, point and fault that can occur there."""
    for stage in STAGES:
        for name in NAMES:
            for fault in FAULTS:
                if not can_befall(name, fault):
                    continue
                marks = MARKS.get((stage, name, fault), (pytest.mark.slow(ci=False),))
                yield pytest.param(stage, name, fault, marks=marks)


@pytest.mark.parametrize(("stage", "name", "fault"), list(cases()))
def test_a_fault_at_any_point_of_a_reindex(
    make: Make,
    oracle: Oracle,
    trace: list[Point],
    stage: str,
    name: str,
    fault: Fault,
) -> None:
    drawn = [crc32(f"{stage} {name} {fault}".encode()) % 4]
    quarters: Sequence[int] = range(4) if FULL else drawn
    for strike in strikes(trace, stage, name, fault, quarters):
        world = make(ReindexedWorld)
        world.nemesis.arm(strike)
        reindex(world, **RULES)
        assert world.problems(oracle) == [], strike


@pytest.mark.parametrize("step", mostly_slow(range(1, OPERATOR_STEPS + 1), 1, 6, 9, OPERATOR_STEPS))
def test_the_command_is_killed_and_run_again(make: Make, oracle: Oracle, step: int) -> None:
    world = make(ReindexedWorld)
    world.operator_dies_at = step
    reindex(world, **RULES)
    assert world.operator_died
    assert world.problems(oracle) == []


@pytest.mark.parametrize("late", ["a", slow("b")])
def test_a_worker_that_sees_the_plan_late(make: Make, oracle: Oracle, late: str) -> None:
    world = make(ReindexedWorld, Measures(partitions=3))
    first, second, third, fourth, last = slices(near_copies(50, 6), 10, 10, 10, 10)
    world.start("a")
    world.start("b")
    world.feed(first)
    world.rounds(4)
    steps: list[Callable[[], None]] = [
        partial(world.build, **RULES),
        world.hand_over,
        world.complete,
    ]
    for step, some in zip(steps, (second, third, fourth), strict=True):
        world.blind.clear()
        world.rounds(4)
        world.blind.add(late)
        step()
        world.feed(some)
        world.rounds(6)
    world.feed(last)
    world.rounds(4)
    world.blind.clear()
    world.finish()
    assert world.problems(oracle) == []


@pytest.mark.slow
def test_what_was_given_up_leaves_nothing(make: Make, oracle: Oracle) -> None:
    world = make(ReindexedWorld)
    first, second, third, last = slices(near_copies(40, 8), 10, 10, 10)
    world.start("a")
    world.feed(first)
    world.rounds(3)
    world.build(shards=4)
    world.feed(second)
    world.rounds(3)
    world.abort()
    world.hand_over()
    world.feed(third)
    world.rounds(3)
    world.build(**RULES)
    world.rounds(2)
    world.hand_over()
    world.complete()
    world.feed(last)
    world.finish()
    assert list(world.archive.hand_overs) == [2]
    assert world.problems(oracle) == []


@pytest.mark.slow
def test_a_second_reindex_follows_the_first(make: Make, oracle: Oracle) -> None:
    world = make(ReindexedWorld)
    world.start("a")
    texts = slices(near_copies(45, 9), 15, 15, 15)
    for rules in ({"shards": 4}, RULES, {"threshold": 0.9, "absorb": 0.95}):
        some = next(texts)
        world.feed(some)
        world.build(**rules)
        world.rounds(2)
        world.hand_over()
        world.complete()
        world.suffer("a", "dies, disk lost")
    world.finish()
    assert list(world.archive.hand_overs) == [1, 2, 3]
    assert world.problems(oracle) == []
