"""Whatever happens in weeks, in whatever order: no loss is silent, and no fear is idle.

Hypothesis draws what happens, and finds the shortest schedule that breaks a rule. A run
draws the same ones every time, few unless all tests run; ``NEARDUP_TEST_SCALE=full`` draws
many new ones.
"""

import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.corpus import FULL, examples
from tests.world.acts import Act, play
from tests.world.measures import Measures
from tests.world.simulation.acts import acts, measures
from tests.world.simulation.judge import problems
from tests.world.simulation.timed import TimedWorld

WORLDS = measures() | measures(window=True) | measures(window=True, dated=True)
FEW = settings(
    max_examples=examples(10),
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
MANY = settings(FEW, max_examples=examples(100, 3_000), derandomize=not FULL, print_blob=FULL)


@pytest.mark.timeout(600)  # Hypothesis may shorten what fails for five minutes.
@FEW
@given(measures=WORLDS, schedule=acts())
def test_any_schedule(directory: Path, measures: Measures, schedule: list[Act[TimedWorld]]) -> None:
    holds(directory, measures, schedule)


@pytest.mark.slow(ci=False)
@pytest.mark.timeout(0 if FULL else 600)
@MANY
@given(measures=WORLDS, schedule=acts())
def test_any_of_many_schedules(
    directory: Path, measures: Measures, schedule: list[Act[TimedWorld]]
) -> None:
    holds(directory, measures, schedule)


def holds(directory: Path, measures: Measures, schedule: list[Act[TimedWorld]]) -> None:
    with (
        tempfile.TemporaryDirectory(dir=directory) as place,
        closing(TimedWorld(Path(place), measures)) as world,
    ):
        play(world, schedule)
        assert problems(world, directory) == []
