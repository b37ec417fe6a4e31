"""Worlds with a window, in which brokers delete from the log that the index is built from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.breadth import slow
from tests.support.checker import check, differences
from tests.support.checker.history import History, verdicts
from tests.support.replay import replay
from tests.support.texts import near_copies
from tests.world.conftest import Make
from tests.world.measures import Keep, Measures
from tests.world.simulation.timed import TimedWorld
from tests.world.writer import Manner
from worker.bus import Outgoing

TEXTS = near_copies(60, 8)
MANY = near_copies(180, 8)
EVERYWHERE = range(3)
KEEP = Keep(documents=None, matches=None, outputs=None, offsets=None, fingerprints=72)


def problems(one: TimedWorld, directory: Path) -> list[str]:
    """Return what is wrong with what was published, compared with a replay of the whole log."""
    assert one.quiet()
    topology, archive = one.topology, one.archive
    history = History(
        one.writer.written,
        archive.of(topology.unique),
        archive.of(topology.duplicate),
        archive.of(topology.rejected),
    )
    expected = replay(archive.of(topology.fingerprints), one.settings, topology, 1, directory)
    ended = [f"{ending.worker} ended: {ending.what}" for ending in one.endings]
    return [*ended, *check(history), *differences(verdicts(history), expected)]


def emptied(one: TimedWorld) -> bool:
    """Return whether brokers have deleted all frames, with the marker behind the last one."""
    order = one.topology.order
    return one.bus.start_offset(*order) == one.bus.end_offset(*order)


@pytest.mark.parametrize(
    ("manner", "standby"),
    [
        ("plain", False),
        slow("plain", True),
        slow("aborted first", False),
        slow("aborted first", True),
        slow("overlapping", False),
        ("overlapping", True),
    ],
)
def test_weeks_go_by(make: Make, tmp_path: Path, manner: Manner, *, standby: bool) -> None:
    overlap = manner == "overlapping"
    one = make(
        TimedWorld, Measures(partitions=3, window="2d", keep=KEEP, standby=standby, overlap=overlap)
    )
    one.start("a")
    one.start("b")
    for part in range(10):
        # Now is the 16th latest time: with fewer documents, it would be behind by days.
        one.writer.write(MANY[18 * part : 18 * part + 18], EVERYWHERE, manner)
        one.pass_hours(20)
        one.stop("ab"[part % 2])
        one.start("ab"[part % 2])
    assert one.bus.start_offset(*one.topology.order) > 10
    assert problems(one, tmp_path) == []


@pytest.mark.parametrize("standby", [slow(False), True])
@pytest.mark.parametrize(
    ("aborted", "overlap"),
    [
        slow(0, False),
        pytest.param(3, False, marks=pytest.mark.slow(ci=False)),
        pytest.param(0, True, marks=pytest.mark.slow(ci=False)),
        (3, True),
    ],
)
def test_a_feed_that_stands_still_forgets_nothing(
    make: Make, tmp_path: Path, aborted: int, *, standby: bool, overlap: bool
) -> None:
    """Whatever is behind the last frame: other workers' markers, and transactions that abort."""
    one = make(
        TimedWorld, Measures(partitions=3, window="2d", keep=KEEP, standby=standby, overlap=overlap)
    )
    one.start("a")
    one.start("b")
    for texts in (TEXTS[:-3], TEXTS[-3:]):  # The last ones are of both workers.
        one.writer.write(texts, EVERYWHERE)
        assert one.quiet()
    for number in range(aborted):
        transaction = one.bus.begin(f"other-{number}")
        transaction.append_many([Outgoing(*one.topology.order, None, b"")])
        transaction.abort()
    one.pass_hours(200)
    assert emptied(one)
    for name in ("a", "b"):
        one.stop(name)
        if standby:
            one.pass_hours(1)
        assert one.start(name)
        one.pass_hours(1)
    assert emptied(one)
    copies = [(f"again-{ident}", text) for ident, text in TEXTS]
    one.writer.write(copies, EVERYWHERE, age_hours=190)
    assert problems(one, tmp_path) == []
    duplicates = one.archive.of(one.topology.duplicate)
    assert sum(b"again-" in (record.value or b"") for record in duplicates) == len(copies)


def test_a_shard_that_is_lost_finds_exact_copies_of_the_window(make: Make) -> None:
    one = make(TimedWorld, Measures(partitions=3, window="2d", keep=KEEP))
    one.start("a")
    for part in range(5):
        one.writer.write(TEXTS[12 * part : 12 * part + 12], EVERYWHERE)
        one.pass_hours(20)
    assert one.bus.start_offset(*one.topology.order) > 0
    one.kill("a", lose_disk=True)
    assert one.start("a")
    copies = [(f"again-{ident}", text) for ident, text in TEXTS[36:]]
    one.writer.write(copies, EVERYWHERE)
    assert one.quiet()
    assert one.endings == []
    duplicates = one.archive.of(one.topology.duplicate)
    assert sum(b"again-" in (record.value or b"") for record in duplicates) == len(copies)
