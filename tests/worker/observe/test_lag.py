"""How far a stage is behind, on the in-process log."""

from time import time

import pytest

from worker.bus import Outgoing, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.observe.lag import Lag, LagMeter

AGE_SECONDS = 100
PLACES = [TopicPartition("t", number) for number in range(2)]


@pytest.fixture
def bus() -> MemoryBus:
    bus = MemoryBus(clock=lambda: int(1_000 * (time() - AGE_SECONDS)))
    bus.create_topic("t", 2)
    return bus


def write(bus: MemoryBus, partition: int, count: int) -> None:
    """Write in a transaction, which leaves a marker behind."""
    transaction = bus.begin("p")
    transaction.append_many(Outgoing("t", partition, None, b"x") for _ in range(count))
    transaction.commit()


def measured(meter: LagMeter, bus: MemoryBus, *at: int) -> Lag:
    ends = [bus.end_offset(*place) for place in PLACES]
    return meter.measure(dict(zip(PLACES, zip(at, ends, strict=True), strict=True)))


def test_records_are_counted_and_the_oldest_is_found(bus: MemoryBus) -> None:
    meter = LagMeter(bus.log_reader("g", ["t"]))
    write(bus, 0, 5)
    write(bus, 1, 2)
    lag = measured(meter, bus, 2, 0)
    assert lag.records == 4 + 3  # Behind the last records there are the markers.
    assert lag.seconds == pytest.approx(AGE_SECONDS, abs=30)


def test_a_marker_is_no_lag_until_a_record_comes(bus: MemoryBus) -> None:
    meter = LagMeter(bus.log_reader("g", ["t"]))
    write(bus, 0, 5)
    for _ in range(2):
        assert measured(meter, bus, 5, 0) == Lag(0, None)
    write(bus, 0, 1)
    lag = measured(meter, bus, 5, 0)
    assert lag.records == 3
    assert lag.seconds is not None


def test_a_log_that_was_trimmed_meanwhile_stops_nothing(bus: MemoryBus) -> None:
    meter = LagMeter(bus.log_reader("g", ["t"]))
    write(bus, 0, 5)
    write(bus, 1, 2)
    bus.trim("t", 0, 3)
    lag = measured(meter, bus, 1, 0)
    assert lag.records == 5 + 3
    assert lag.seconds is not None
