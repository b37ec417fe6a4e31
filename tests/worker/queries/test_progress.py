"""How far a reader is, and how far the log goes."""

from __future__ import annotations

import pytest

from tests.worker.index.standby_bench import PLACE, Tape
from worker.bus import Denied, LogReader, TopicPartition
from worker.queries.progress import LogProgress, WholeLogReader

LOG = TopicPartition("log", 0)
NOW = 100.0


def progress(at: float = NOW) -> LogProgress:
    return LogProgress(lambda: at)


def test_nothing_is_known_before_the_end_was_looked_up() -> None:
    fresh = progress()
    assert fresh.behind(PLACE, 7) is None
    assert fresh.checked_seconds() is None


def test_a_store_is_behind_by_what_it_has_not_applied() -> None:
    one = progress()
    one.ends(50)
    assert one.checked_seconds() == 0.0
    assert one.behind(PLACE, 40) == 10
    one.read(PLACE, 48, 50)
    assert one.behind(PLACE, 47) == 3  # A record that was delivered is not applied.
    assert one.behind(PLACE, 48) == 0  # Only markers follow.
    assert one.behind(PLACE, 51) == 0


def test_everything_in_the_log_counts_as_committed() -> None:
    tape, noted = Tape(9), progress()
    reader = WholeLogReader(PLACE, lambda: tape, noted)
    assert reader.committed([PLACE]) == {PLACE: 9}
    reader.start(PLACE, 2)
    assert noted.behind(PLACE, 2) == 7
    assert [record.offset for record in reader.read(4, 1 << 20, 0.0)] == [2, 3, 4, 5]
    assert noted.behind(PLACE, 4) == 5
    assert noted.behind(PLACE, 6) == 3


def test_a_missing_right_is_noted() -> None:
    def denied() -> LogReader:
        raise Denied("Read on topic log is missing")

    noted = progress()
    reader = WholeLogReader(LOG, denied, noted)
    with pytest.raises(Denied):
        reader.committed([PLACE])
    assert str(noted.denied) == "Read on topic log is missing"
