"""The threads of a run: what fails ends it, and what doesn't end is left behind."""

from threading import Event

import pytest

from localkafka.broker import wait_until
from tests.faults.doing import Doing

SECONDS = 10


def test_it_is_done_once_all_have_ended() -> None:
    may_end, over = Event(), Event()
    with Doing({"one": lambda: None, "other": lambda: wait(may_end)}, over.set) as doing:
        assert not doing.all_done()
        may_end.set()
        wait_until(doing.all_done, SECONDS, "both to end")
    assert over.is_set()


def test_a_failure_is_raised_to_who_looks() -> None:
    def fail() -> None:
        raise AssertionError("no leader")

    with (
        pytest.raises(AssertionError, match="no leader"),
        Doing({"one": fail}, lambda: None) as doing,
    ):
        wait_until(doing.all_done, SECONDS, "it to fail")


def test_what_does_not_end_is_named_and_the_failure_before_it_kept() -> None:
    stuck = Event()
    try:
        with (
            pytest.raises(TimeoutError, match="the feeder did not end in 0 s") as raised,
            Doing({"the feeder": lambda: wait(stuck)}, lambda: None, end_seconds=0.01),
        ):
            raise AssertionError("given up")
        assert str(raised.value.__context__) == "given up"
    finally:
        stuck.set()


def wait(event: Event) -> None:
    assert event.wait(SECONDS)
