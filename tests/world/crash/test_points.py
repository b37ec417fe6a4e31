"""A worker is struck at every step of every stage, and nothing is lost, doubled or changed.

The points are those of one undisturbed run. Each test takes one kind of point, one fault,
and a few arrivals there, early and late (with ``NEARDUP_TEST_SCALE=full`` all of them).
`make test` takes a death at each point of a lone worker's index stage, with torn transactions,
and one at the other stages' commits; CI the rest of these; `make test-slow` all else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final, get_args
from zlib import crc32

import pytest
from _pytest.mark import ParameterSet

from tests.support.breadth import mostly_slow
from tests.support.corpus import FULL
from tests.support.points import DONE, Fault, Point, Strike
from tests.world.conftest import Make
from tests.world.crash.proof import Oracle
from tests.world.crash.scenarios import SCENARIOS
from tests.world.world import World
from worker.probe import Point as Published
from worker.topology import STAGES

BROAD: Final = pytest.mark.slow
EXHAUSTIVE: Final = pytest.mark.slow(ci=False)

TRANSACTION: Final = ("begin", "produce", "offsets", "commit", "commit" + DONE)
TAKING_OVER: Final = ("look up", "adopt", "adopt" + DONE, "seek", "resume")
"""And so after each look-up (`adopt`), after the last seek (`resume`), after all (`poll`)."""
STORE: Final = tuple(call + end for call in ("open", "write", "flush") for end in ("", DONE))
AMONG_OTHERS: Final = ("adopt", "adopt" + DONE, "resume", "begin", "offsets", *TRANSACTION[-2:])
CLOSING: Final = ("close", "close" + DONE)
SNAPSHOTS: Final = (
    *("checkpoint", "checkpoint" + DONE, "ship" + DONE, "trim", "trim" + DONE),
    *("put aside", "put aside" + DONE, "fetch" + DONE, "exchange", "exchange" + DONE),
    *("open" + DONE, "close" + DONE),
)
UNWATCHED: Final = {call + DONE for call in ("poll", "look up", "seek", "resume")}
"""The next point of the same stage comes before anything can have changed."""

AGAIN: Final = ("renew", "adopt", "adopt" + DONE, "seek", "begin", "commit" + DONE)
"""What follows on a transaction in doubt."""

TORN: Final[tuple[Fault, ...]] = ("torn, no offsets", "torn, only offsets", "torn, every other")

ARRIVALS: Final[dict[Fault, int]] = {
    "dies": 2,
    "unknown": 2,
    "aborted": 1,
    "torn, no offsets": 3,
    "torn, only offsets": 3,
    "torn, every other": 3,
    "replaced": 2,
    "dies, disk lost": 1,
    "evicted": 1,
}
"""How many arrivals of a lone worker are struck; of several workers', it is one."""


def names(scenario: str, stage: str) -> tuple[str, ...]:
    """Name the points of a stage that are struck."""
    index = stage == "index"
    if scenario == "alone":
        return ("poll", *TAKING_OVER, *TRANSACTION, *(STORE if index else ()))
    if scenario == "together":
        return (*AMONG_OTHERS, *((*STORE, *CLOSING) if index else ()))
    if scenario == "corrected":
        return ("commit", "commit" + DONE, *(("write" + DONE, "flush" + DONE) if index else ()))
    return SNAPSHOTS if index else ()


def faults(scenario: str, stage: str, name: str) -> Iterator[Fault]:
    """Give what can happen at a point; to roll back, a worker needs no others."""
    if scenario == "alone" and name in TRANSACTION and name != "commit" + DONE:
        yield "aborted"
    if name in {"commit", "commit" + DONE}:
        yield "unknown"
    if name == "commit":
        yield from TORN
    yield "replaced"
    yield "evicted"
    if scenario == "together":
        yield "dies, away"
    else:
        yield "dies"
        if stage == "index":
            yield "dies, disk lost"


def cases() -> Iterator[ParameterSet]:
    """Yield every scenario, stage, point and fault."""
    for scenario in SCENARIOS:
        for stage in STAGES:
            for name in names(scenario, stage):
                for fault in faults(scenario, stage, name):
                    marks = mark(scenario, stage, name, fault)
                    yield pytest.param(scenario, stage, name, fault, marks=marks)


def mark(scenario: str, stage: str, name: str, fault: Fault) -> tuple[pytest.MarkDecorator, ...]:
    """Give the marker of a case, if it has one."""
    if scenario == "corrected" and fault == "dies":
        return () if name == "commit" + DONE else (BROAD,)
    if scenario != "alone" or fault not in {"dies", *TORN}:
        return (EXHAUSTIVE,)
    committing = fault == "dies" and name in {"commit", "commit" + DONE}
    return () if stage == "index" or committing else (BROAD,)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Point]]:
    """Give all points of undisturbed runs, in order."""
    found = {}
    for name, scenario in SCENARIOS.items():
        with closing(World(tmp_path_factory.mktemp(name), scenario.measures)) as world:
            scenario.run(world)
            found[name] = world.nemesis.trace
    return found


def arrivals(trace: list[Point], stage: str, name: str) -> list[tuple[Point, int]]:
    """Give every arrival at a stage's points of this name: whose, and the how-manieth."""
    found: list[tuple[Point, int]] = []
    for point in trace:
        if (point.stage, point.name) == (stage, name):
            found.append((point, sum(point == earlier for earlier, _ in found) + 1))
    return found


def some(of: list[tuple[Point, int]], number: int, seed: str) -> list[tuple[Point, int]]:
    """Choose the first, the last and some between; a single one by the seed."""
    if FULL or len(of) <= number:
        return of
    if number == 1:
        return [of[crc32(seed.encode()) % len(of)]]
    return [of[place * (len(of) - 1) // (number - 1)] for place in range(number)]


def test_no_point_of_a_lone_worker_is_forgotten(traces: dict[str, list[Point]]) -> None:
    came_to = {(point.stage, point.name) for point in traces["alone"]}
    known = {(stage, name) for stage in STAGES for name in names("alone", stage)}
    assert {(stage, name) for stage, name in came_to if name not in UNWATCHED} == known


def test_all_that_has_to_do_with_snapshots_comes_about(traces: dict[str, list[Point]]) -> None:
    came_to = {point.name for point in traces["kept"] if point.stage == "index"}
    assert came_to >= set(names("kept", "index"))


def test_every_published_point_is_come_to(traces: dict[str, list[Point]]) -> None:
    came_to = {point.name for trace in traces.values() for point in trace}
    published = {name + end for name in get_args(Published) for end in ("", DONE)}
    only_in_doubt = {"renew", "renew" + DONE}
    assert published - came_to == only_in_doubt
    assert came_to - published == set(TRANSACTION)


@pytest.mark.parametrize(("scenario", "stage", "name", "fault"), list(cases()))
def test_a_fault_at_any_point(
    make: Make,
    oracle: Oracle,
    traces: dict[str, list[Point]],
    scenario: str,
    stage: str,
    name: str,
    fault: Fault,
) -> None:
    found = arrivals(traces[scenario], stage, name)
    number = ARRIVALS[fault] if scenario == "alone" else 1
    for point, nth in some(found, number, f"{stage} {name} {fault}"):
        strike = Strike(point, nth, fault)
        struck = make(World, SCENARIOS[scenario].measures)
        struck.nemesis.arm(strike)
        SCENARIOS[scenario].run(struck)
        assert struck.nemesis.struck == [strike]
        assert scenario == "kept" or not struck.endings
        assert oracle.problems(struck) == [], strike


@pytest.mark.parametrize("fault", ["dies", pytest.param("replaced", marks=EXHAUSTIVE)])
@pytest.mark.parametrize("name", mostly_slow(AGAIN, "adopt", "commit" + DONE))
@pytest.mark.parametrize("doubt", ["commit", pytest.param("commit" + DONE, marks=EXHAUSTIVE)])
@pytest.mark.parametrize("stage", mostly_slow(STAGES, "index", "route"))
def test_a_second_fault_while_a_transaction_is_in_doubt(
    make: Make, oracle: Oracle, stage: str, doubt: str, name: str, fault: Fault
) -> None:
    second = Strike(Point("a", stage, name), 1, fault)
    nth = 1 + crc32(f"{stage} {doubt} {name} {fault}".encode()) % 4
    first = Strike(Point("a", stage, doubt), nth, "unknown", second)
    struck = make(World)
    struck.nemesis.arm(first)
    SCENARIOS["alone"].run(struck)
    assert struck.nemesis.struck == [first, second]
    assert oracle.problems(struck) == []
