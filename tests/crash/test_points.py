"""A worker is struck at every step of every stage, and nothing is lost, doubled or changed.

The points are those of one undisturbed run. Each test takes one kind of point, one fault,
and a few arrivals there, early and late (with ``NEARDUP_TEST_SCALE=full`` all of them).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from zlib import crc32

import pytest

from tests.crash.conftest import MakeWorld
from tests.crash.points import DONE, Fault, Point, Strike
from tests.crash.proof import Oracle
from tests.crash.scenarios import SCENARIOS, Scenario, alone
from tests.crash.world import World
from tests.integration.corpus import FULL
from worker.topology import STAGES

TRANSACTION: Final = ("begin", "produce", "offsets", "commit", "commit" + DONE)
TAKING_OVER: Final = ("look up", "adopt", "adopt" + DONE, "seek", "resume")
"""And so after each look-up (`adopt`), after the last seek (`resume`), after all (`poll`)."""
STORE: Final = tuple(call + end for call in ("open", "write", "flush") for end in ("", DONE))
CLOSING: Final = ("close", "close" + DONE)
UNWATCHED: Final = {call + DONE for call in ("poll", "look up", "seek", "resume")}
"""The next point of the same stage comes before anything can have changed."""

AGAIN: Final = ("renew", *TAKING_OVER, "begin", "commit" + DONE)
"""What follows on a transaction in doubt."""

ARRIVALS: Final[dict[Fault, int]] = {
    "dies": 3,
    "unknown": 3,
    "aborted": 2,
    "replaced": 2,
    "dies, disk lost": 2,
    "evicted": 1,
}
"""How many arrivals of a lone worker are struck; of several workers', it is one."""


def names(stage: str) -> tuple[str, ...]:
    """Name the points of a stage."""
    own = (*STORE, *CLOSING) if stage == "index" else ()
    return ("poll", *TAKING_OVER, *TRANSACTION, *own)


def faults(scenario: str, stage: str, name: str) -> Iterator[Fault]:
    """Give what can happen at a point."""
    if name in TRANSACTION and name != "commit" + DONE:
        yield "aborted"
    if name in {"commit", "commit" + DONE}:
        yield "unknown"
    yield "replaced"
    yield "evicted"
    if scenario == "alone":
        yield "dies"
        if stage == "index":
            yield "dies, disk lost"
    else:
        yield "dies, away"


def cases() -> Iterator[tuple[str, str, str, Fault]]:
    """Give every scenario, stage, point and fault; a lone worker's stores aren't closed."""
    for scenario in SCENARIOS:
        for stage in STAGES:
            for name in names(stage):
                if scenario == "alone" and name in CLOSING:
                    continue
                for fault in faults(scenario, stage, name):
                    yield scenario, stage, name, fault


def sizes(scenario: str) -> dict[str, int]:
    """Give a world's measures."""
    return {"partitions": 3, "shards": 3} if scenario == "together" else {}


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Point]]:
    """Give all points of undisturbed runs, in order."""
    found = {}
    for name, scenario in SCENARIOS.items():
        world = World(tmp_path_factory.mktemp(name), **sizes(name))
        run(world, scenario)
        world.close()
        found[name] = world.trace
    return found


def run(world: World, scenario: Scenario) -> None:
    """Run to the end."""
    scenario(world)
    world.finish()


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


def test_no_point_is_forgotten(traces: dict[str, list[Point]]) -> None:
    came_to = {(point.stage, point.name) for trace in traces.values() for point in trace}
    known = {(stage, name) for stage in STAGES for name in names(stage)}
    assert {(stage, name) for stage, name in came_to if name not in UNWATCHED} == known


@pytest.mark.parametrize(("scenario", "stage", "name", "fault"), list(cases()))
def test_a_fault_at_any_point(  # noqa: PLR0913, PLR0917 -- what tells the cases apart
    world: MakeWorld,
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
        struck = world(**sizes(scenario))
        struck.arm(strike)
        run(struck, SCENARIOS[scenario])
        assert struck.struck == [strike]
        assert oracle.problems(struck) == [], strike


@pytest.mark.parametrize("fault", ["dies", "replaced"])
@pytest.mark.parametrize("name", AGAIN)
@pytest.mark.parametrize("doubt", ["commit", "commit" + DONE])
@pytest.mark.parametrize("stage", STAGES)
def test_a_second_fault_while_a_transaction_is_in_doubt(  # noqa: PLR0913, PLR0917
    world: MakeWorld, oracle: Oracle, stage: str, doubt: str, name: str, fault: Fault
) -> None:
    second = Strike(Point("a", stage, name), 1, fault)
    nth = 1 + crc32(f"{stage} {doubt} {name} {fault}".encode()) % 4
    first = Strike(Point("a", stage, doubt), nth, "unknown", second)
    struck = world()
    struck.arm(first)
    run(struck, alone)
    assert struck.struck == [first, second]
    assert oracle.problems(struck) == []
