"""Worlds in which all goes well, so that what the other tests find is no fault of the world."""

import pytest

from tests.support.breadth import slow
from tests.support.texts import near_copies
from tests.world.conftest import Judge, Make
from tests.world.measures import Keep, Measures
from tests.world.simulation.timed import TimedWorld
from tests.world.writer import Manner

EVERYWHERE = range(3)
FOR_EVER = Keep(documents=None, matches=None, outputs=None, offsets=None)


@pytest.mark.parametrize(
    "manner",
    [
        "plain",
        pytest.param("transaction", marks=pytest.mark.slow(ci=False)),
        slow("aborted first"),
        "overlapping",
    ],
)
@pytest.mark.parametrize(
    "measures",
    [
        slow(Measures(partitions=3, keep=FOR_EVER)),
        pytest.param(
            Measures(partitions=3, snapshots=5.0, standby=True, keep=FOR_EVER),
            marks=pytest.mark.slow(ci=False),
        ),
        Measures(partitions=3, snapshots=5.0, standby=True, overlap=True, keep=FOR_EVER),
    ],
)
def test_weeks_go_by(make: Make, judged: Judge, measures: Measures, manner: Manner) -> None:
    one = make(TimedWorld, measures)
    texts = near_copies(36, 2)
    one.start("a")
    for part in range(3):
        one.writer.write(texts[12 * part : 12 * part + 12], EVERYWHERE, manner)
        one.pass_hours(100)
        one.start("b")
    one.stop("a")
    one.pass_hours(100)
    assert judged(one) == []
    assert one.endings == []
    assert len(one.writer.written) == 36 + 2 * 3


@pytest.mark.slow
def test_logs_that_are_never_idle_are_emptied(make: Make, judged: Judge) -> None:
    one = make(TimedWorld, Measures(partitions=3, snapshots=5.0))
    texts = near_copies(60, 5)
    one.start("a")
    one.start("b")
    for part in range(20):
        one.writer.write(texts[3 * part : 3 * part + 3], EVERYWHERE)
        one.pass_hours(6)
    assert judged(one) == []
    assert min(one.bus.start_offset(one.topology.documents, n) for n in EVERYWHERE) > 10
