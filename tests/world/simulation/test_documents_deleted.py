"""Documents that time deletes before they are published, and answers that nobody read."""

import pytest

from tests.support.checker.history import reason, source
from tests.support.texts import near_copies
from tests.world.conftest import Judge, Make
from tests.world.measures import Keep, Measures
from tests.world.simulation.timed import TimedWorld

TEXTS = near_copies(24, 17)
BEFORE_ROUTE = ("fingerprint", "index")
SHORT_DOCUMENTS = Keep(documents=12, matches=7 * 24)


def test_documents_deleted_after_they_were_judged_are_rejected(make: Make, judged: Judge) -> None:
    one = make(TimedWorld, Measures(partitions=3, keep=SHORT_DOCUMENTS))
    one.start("a")
    one.writer.write(TEXTS[:12], range(3))
    one.pass_hours(1)
    one.writer.write(TEXTS[12:], range(3))
    one.hurry("a", BEFORE_ROUTE, 30)
    one.kill("a")
    one.pass_hours(48)
    assert len(one.losses.unpublished) == 12
    assert one.start("a"), one.endings
    one.quiet()
    rejected = one.archive.of(one.topology.rejected)
    assert {reason(record) for record in rejected} == {"payload-gone"}
    assert {source(record) for record in rejected} == one.losses.unpublished
    assert judged(one) == []


def test_documents_deleted_before_they_were_read_stop_the_application(
    make: Make, judged: Judge
) -> None:
    one = make(TimedWorld, Measures(partitions=3, keep=SHORT_DOCUMENTS))
    one.start("a")
    one.writer.write(TEXTS[:12], range(3))
    one.pass_hours(1)
    one.stop("a")
    one.writer.write(TEXTS[12:], range(3))
    one.pass_hours(48)
    assert {loss.stage for loss in one.losses.fatal} == {"fingerprint"}
    assert not one.start("a")
    assert f"{one.topology.documents}[" in one.endings[-1].what
    assert judged(one) == []


def test_answers_deleted_before_they_were_read_are_not_passed_over(
    make: Make, judged: Judge
) -> None:
    one = make(TimedWorld, Measures(partitions=3, keep=Keep(documents=None, matches=12)))
    one.start("a")
    one.writer.write(TEXTS[:12], range(3))
    one.pass_hours(1)
    one.writer.write(TEXTS[12:], range(3))
    one.hurry("a", BEFORE_ROUTE, 30)
    one.kill("a")
    one.pass_hours(48)
    assert {loss.stage for loss in one.losses.fatal} == {"route"}
    assert judged(one) == []
    assert any("matches-" in ending.what for ending in one.endings)


def test_answers_deleted_with_their_documents_are_passed_over(
    make: Make, judged: Judge, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing could be published for them any more. A worker that stops would stop for ever."""
    one = make(TimedWorld, Measures(partitions=3, keep=Keep(documents=12, matches=12)))
    one.start("a")
    one.writer.write(TEXTS[:12], range(3))
    one.pass_hours(1)
    one.writer.write(TEXTS[12:18], range(3))
    one.hurry("a", BEFORE_ROUTE, 30)
    one.kill("a")
    one.pass_hours(48)
    assert {loss.stage for loss in one.losses.fatal} == {"route"}
    assert one.start("a"), one.endings
    one.writer.write(TEXTS[18:], range(3))
    one.quiet()
    assert one.endings == []
    assert judged(one) == []
    said = [line for line in caplog.messages if "so were their answers" in line]
    assert len(said) == len({line.split(":")[0] for line in said}) == 3


def test_answers_for_aborted_documents_may_be_deleted(make: Make, judged: Judge) -> None:
    one = make(TimedWorld, Measures(partitions=3, keep=Keep(documents=12, matches=12)))
    one.start("a")
    one.writer.write(TEXTS[:12], range(3), "transaction")
    one.pass_hours(1)
    one.writer.write(TEXTS[12:18], range(3), "aborted")
    one.hurry("a", BEFORE_ROUTE, 30)
    one.kill("a")
    one.pass_hours(48)
    assert one.start("a"), one.endings
    one.writer.write(TEXTS[18:], range(3), "transaction")
    one.quiet()
    assert one.endings == []
    assert judged(one) == []


def test_a_group_whose_offsets_expired_stops_the_application(make: Make, judged: Judge) -> None:
    one = make(TimedWorld, Measures(partitions=3, keep=Keep(documents=None, matches=None)))
    one.start("a")
    one.writer.write(TEXTS[:12], range(3))
    one.pass_hours(1)
    one.stop("a")
    one.pass_hours(6 * 24)
    assert not one.losses.expired
    one.pass_hours(2 * 24)
    assert one.losses.expired
    assert not one.start("a")
    assert "is missing" in one.endings[-1].what
    assert judged(one) == []
