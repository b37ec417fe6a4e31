"""The index is replaced by its next generation, and nothing is lost, doubled or misjudged."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.crash.measures import Measures
from tests.crash.proof import Oracle
from tests.crash.reindexing import ReindexedWorld
from tests.support.texts import near_copies, slices

MakeWorld = Callable[..., ReindexedWorld]


@pytest.fixture
def reindexed(directory: Path) -> Iterator[MakeWorld]:
    """Yield a factory of worlds; takes what the class takes."""
    with ExitStack() as stack:

        def make(measures: Measures | None = None) -> ReindexedWorld:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=directory)))
            return stack.enter_context(closing(ReindexedWorld(place, measures)))

        yield make


def reindex(world: ReindexedWorld, **rules: float) -> None:
    """Two workers, and documents before, during and after each step."""
    first, second, third, fourth, fifth, last = slices(near_copies(60, 5), 12, 8, 8, 8, 8)
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
        {"shards": 4},
        {"shards": 1},
        {"shards": 3, "threshold": 0.7, "absorb": 0.9},
        {"threshold": 0.95, "bucket_capacity": 2},
    ],
    ids=str,
)
def test_verdicts_change_at_the_hand_over_and_nothing_is_lost(
    reindexed: MakeWorld, oracle: Oracle, rules: dict[str, float]
) -> None:
    world = reindexed()
    reindex(world, **rules)
    assert world.auditor.hand_overs
    assert world.problems(oracle) == []
