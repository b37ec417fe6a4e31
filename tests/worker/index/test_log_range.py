"""From which offsets a store can go on, and where a new one begins."""

import pytest

from worker.index.log_range import LogRange

KEPT = LogRange(10, 50, 40)
FORGETTING = LogRange(10, 50, 40, forgets=True)


@pytest.mark.parametrize(
    ("log", "offset", "objection"),
    [
        (KEPT, 0, None),
        (KEPT, 9, "before the start of the log, 10"),
        (KEPT, 10, None),
        (KEPT, 40, None),
        (KEPT, 41, "past the group's, 40"),
        (KEPT, 51, "after the end of the log, 50"),
        (FORGETTING, 8, "before the start of the log, 10"),
        (FORGETTING, 9, None),
        (FORGETTING, 41, "past the group's, 40"),
    ],
)
def test_a_store_goes_on_if_the_log_has_all_that_follows(
    log: LogRange, offset: int, objection: str | None
) -> None:
    found = log.objection(offset)
    assert (found is None) if objection is None else objection in str(found)


@pytest.mark.parametrize(
    ("log", "offset", "start"),
    [(KEPT, 20, 20), (KEPT, 9, 9), (FORGETTING, 20, 20), (FORGETTING, 9, 10), (FORGETTING, 8, 8)],
)
def test_a_marker_that_is_gone_is_passed(log: LogRange, offset: int, start: int) -> None:
    assert log.start(offset) == start


@pytest.mark.parametrize(
    ("log", "beginning"),
    [
        (LogRange(0, 50, 40), 0),
        (LogRange(0, 50, 40, forgets=True), 0),
        (KEPT, None),
        (FORGETTING, 10),
        (LogRange(10, 10, 10, forgets=True), 10),
        (LogRange(10, 10, 9, forgets=True), 9),
        (LogRange(10, 12, 8, forgets=True), 8),
        (LogRange(10, 12, 8), None),
        (LogRange(1, 2, 0, forgets=True), None),
    ],
)
def test_a_new_store_begins_where_nothing_before_counts(
    log: LogRange, beginning: int | None
) -> None:
    assert log.beginning == beginning


def test_where_the_group_is_several_markers_may_be_gone() -> None:
    log = LogRange(10, 10, 7, forgets=True)
    assert (log.objection(7), log.start(7)) == (None, 10)
    assert "before the start" in str(log.objection(6))
    assert "before the start" in str(LogRange(10, 10, 7).objection(7))


def test_what_is_first_in_a_log_is_no_marker() -> None:
    assert not LogRange(1, 2, 0, forgets=True).reaches(0)
