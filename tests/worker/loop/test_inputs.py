"""The age of the oldest unread record is never far from that of a reader who asks the log."""

from __future__ import annotations

import random

import pytest

from tests.support.copying import Copier
from worker.bus import Outgoing, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.loop.inputs import Ages
from worker.loop.loop import Loop
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.stages.base import Burst

PLACE = TopicPartition("in", 0)


def look(ages: Ages, position: int, end: int, now: float) -> float:
    return ages.look({PLACE: position}, {PLACE: end}, now)


def test_what_is_all_read_has_no_age() -> None:
    ages = Ages()
    assert ages.look({}, {}, 5.0) == 0
    assert look(ages, 0, 0, 6.0) == 0
    assert look(ages, 7, 7, 9_000.0) == 0


def test_a_record_after_a_long_pause_is_young() -> None:
    ages = Ages()
    look(ages, 7, 7, 100.0)
    look(ages, 7, 7, 9_000.0)
    assert look(ages, 7, 8, 9_001.0) == 1
    assert look(ages, 7, 8, 9_010.0) == 10


def test_an_age_falls_as_old_records_are_read() -> None:
    ages = Ages()
    for second in range(10):
        look(ages, 0, 10 * second, float(second))  # Ten records a second, from second 0 on.
    assert look(ages, 0, 90, 9.0) == 9
    assert look(ages, 45, 90, 9.0) == 5
    assert look(ages, 90, 95, 10.0) == 1


def test_a_start_with_a_backlog_learns_its_age_from_what_it_reads() -> None:
    ages = Ages()
    assert look(ages, 0, 1_000, 5_000.0) == 0
    assert look(ages, 0, 1_000, 5_003.0) == 3
    ages.read(PLACE, 10, 1_400.0)
    ages.read(PLACE, 20, 1_500.0)
    assert look(ages, 5, 1_000, 5_004.0) == 4  # Read, and not reached yet.
    assert look(ages, 10, 1_000, 5_005.0) == 3_605
    ages.read(PLACE, 30, 1_600.0)
    assert look(ages, 30, 1_000, 5_006.0) == 3_406


def test_a_timestamp_of_the_future_makes_nothing_younger_than_now() -> None:
    ages = Ages()
    look(ages, 0, 10, 100.0)
    ages.read(PLACE, 5, 1e9)
    assert look(ages, 5, 10, 101.0) == 0
    assert look(ages, 5, 10, 111.0) == 10


def test_an_input_that_moves_away_and_back_begins_anew() -> None:
    ages = Ages()
    look(ages, 0, 10, 100.0)
    assert ages.look({}, {}, 150.0) == 0
    assert look(ages, 0, 10, 200.0) == 0
    assert look(ages, 0, 10, 230.0) == 30


def test_a_log_that_was_cut_off_is_no_reader_of_the_future() -> None:
    ages = Ages()
    look(ages, 0, 100, 1.0)
    assert look(ages, 0, 50, 2.0) == 1
    assert look(ages, 49, 60, 4.0) == 3
    assert look(ages, 50, 60, 5.0) == 3  # Seen to end at 50 in second 2.


@pytest.mark.parametrize("seed", range(6))
def test_it_is_as_a_reader_of_the_log_would_say(seed: int) -> None:
    """Records have random times, and a reader of a random pace looks each second for two hours."""
    draw = random.Random(seed)
    ages, position, written, worst = Ages(), 0, list[float](), 0.0
    look(ages, 0, 0, -1.0)
    pace = draw.choice([0.5, 0.9, 1.5])
    for second in range(7_200):
        burst = draw.random() < 0.02
        arrived = draw.randint(0, 200) if burst else draw.randint(0, 2)
        written += sorted(second - draw.random() for _ in range(arrived))
        position = min(len(written), position + draw.randint(0, int(4 * pace)))
        told = look(ages, position, len(written), float(second))
        asked = second - written[position] if position < len(written) else 0.0
        worst = max(worst, told)
        assert asked <= told <= asked + worst / 60 + 2, second
    assert worst > 10


def made(stage: Copier, metrics: Metrics) -> tuple[Loop, MemoryBus]:
    bus = MemoryBus()
    for topic in ("in", "out"):
        bus.create_topic(topic, 1)
    bus.commit_offsets("g", {PLACE: 0})
    return Loop(stage, bus.join("g", ["in"], "one"), metrics=metrics), bus


def test_a_loop_tells_what_is_unread_and_what_is_uncommitted() -> None:
    now = 1_000.0
    metrics = Metrics(clock=lambda: now)
    loop, bus = made(Copier(), metrics)

    def told() -> tuple[float | None, float | None]:
        loop.lag()
        gauges = (table.CONSUMER_LAG_SECONDS, table.WATERMARK_AGE_SECONDS)
        unread, uncommitted = (metrics.value(gauge, loop.stage.name) for gauge in gauges)
        return unread, uncommitted

    loop.step(0)
    assert told() == (0, 0)
    bus.append(Outgoing("in", 0, None, b"a", timestamp=1_000_000))
    now = 1_005.0
    assert told() == (5, 5)
    loop.step(0)
    assert told() == (0, 0)
    loop.close()


class Holder(Copier):
    """A stage that reads, and commits nothing yet."""

    def process(self, *_given: object, **_named: object) -> Burst:
        return Burst()


def test_what_is_read_and_not_committed_has_an_age() -> None:
    now = 1_000.0
    metrics = Metrics(clock=lambda: now)
    loop, bus = made(Holder(), metrics)
    loop.step(0)
    loop.lag()
    bus.append(Outgoing("in", 0, None, b"a", timestamp=1_000_000))
    loop.step(0)
    now = 1_007.0
    loop.lag()
    assert metrics.value(table.CONSUMER_LAG_SECONDS, loop.stage.name) == 0
    assert metrics.value(table.WATERMARK_AGE_SECONDS, loop.stage.name) == 7
    loop.close()


def test_an_index_that_takes_over_counts_from_then_on() -> None:
    """What is built counts apart, without a clock."""
    loop, bus = made(Copier(), Metrics())
    loop.step(0)
    bus.append(Outgoing("in", 0, None, b"a", timestamp=1_000_000))
    loop.lag()
    metrics = Metrics(clock=lambda: 1_000.0)
    loop.count_in(metrics)
    loop.lag()
    assert metrics.value(table.CONSUMER_LAG_SECONDS, loop.stage.name) == 0
    loop.close()
