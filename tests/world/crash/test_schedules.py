"""Whatever happens in whatever order, nothing is lost, doubled or changed.

Hypothesis draws what happens, and finds the shortest schedule that breaks an invariant.
A run draws the same ones every time, few unless all tests run; ``NEARDUP_TEST_SCALE=full`` draws
many new ones.
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.corpus import FULL, examples
from tests.world.acts import Act
from tests.world.crash.proof import Oracle
from tests.world.crash.schedules import acts, measures, play
from tests.world.measures import Measures
from tests.world.world import World

FEW = settings(
    max_examples=examples(6),
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
MANY = settings(FEW, max_examples=examples(24, 2_000), derandomize=not FULL, print_blob=FULL)


@pytest.mark.timeout(240)
@FEW
@given(measures=measures(), schedule=acts())
def test_any_schedule(
    directory: Path, oracle: Oracle, measures: Measures, schedule: list[Act[World]]
) -> None:
    holds(directory, oracle, measures, schedule)


@pytest.mark.slow(ci=False)
@pytest.mark.timeout(0 if FULL else 240)
@MANY
@given(measures=measures(), schedule=acts())
def test_any_of_many_schedules(
    directory: Path, oracle: Oracle, measures: Measures, schedule: list[Act[World]]
) -> None:
    holds(directory, oracle, measures, schedule)


def holds(directory: Path, oracle: Oracle, measures: Measures, schedule: list[Act[World]]) -> None:
    with (
        tempfile.TemporaryDirectory(dir=directory) as place,
        closing(World(Path(place), measures)) as world,
    ):
        play(world, schedule)
        assert oracle.problems(world) == []
