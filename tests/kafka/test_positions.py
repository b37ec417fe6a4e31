"""Positions that a log has lost, under both protocols of consumer groups."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Literal

import pytest

from localkafka.broker import Kafka, wait_until
from tests.support.bus_seats import Seat
from tests.support.kafka_harness import KafkaHarness
from worker.bus import BusError, OffsetOutOfRange, Outgoing, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.member import KafkaMember

PARTITIONS = 4
Protocol = Literal["classic", "consumer"]
Around = Callable[[Protocol], KafkaHarness]


@pytest.fixture
def around(kafka: Kafka, app_id: str) -> Iterator[Around]:
    """Yield a factory of harnesses around the shared broker, by protocol."""
    with ExitStack() as stack:

        def make(protocol: Protocol) -> KafkaHarness:
            bus = KafkaBus(KafkaOptions(kafka.bootstrap, protocol=protocol))
            harness = KafkaHarness(kafka.bootstrap, bus, app_id)
            stack.callback(harness.close)
            return harness

        yield make


def numbered(topic: str, partition: int, count: int, first: int = 0) -> list[Outgoing]:
    """Return records whose value is their number."""
    return [Outgoing(topic, partition, None, b"%d" % n) for n in range(first, first + count)]


@pytest.mark.slow(ci=False)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_every_partition_that_lost_its_position_says_so(around: Around, protocol: Protocol) -> None:
    """All are refused at once, and each goes on once it is sought elsewhere."""
    harness = around(protocol)
    topic = harness.topic(PARTITIONS)
    for number in range(PARTITIONS):
        harness.append(*numbered(topic, number, 10))
    seat = harness.alone(topic)
    for place in seat.owned:
        harness.trim(place, 6)
    seat.start(2)
    said: dict[TopicPartition, tuple[int, int, int]] = {}

    def read() -> bool:
        try:
            seat.poll()
        except OffsetOutOfRange as error:
            said[error.partition] = (error.position, error.low, error.high)
            seat.member.seek(error.partition, error.low)
        return len(seat.records) >= 4 * PARTITIONS

    wait_until(read, 30, "what is left of all partitions")
    assert said == dict.fromkeys(seat.owned, (2, 6, 10))
    assert sorted((r.partition, r.offset) for r in seat.records) == [
        (number, offset) for number in range(PARTITIONS) for offset in range(6, 10)
    ]


@pytest.mark.slow(ci=False)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_log_that_lost_its_end_and_grew_again(
    around: Around, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wanted offset was refused, and by the time of the look it is there again."""
    harness = around(protocol)
    topic = harness.topic()
    harness.append(*numbered(topic, 0, 3))
    seat = harness.alone(topic)
    look = KafkaMember.watermarks

    def grown(member: KafkaMember, partition: TopicPartition) -> tuple[int, int]:
        harness.append(*numbered(topic, 0, 5, first=3))
        return look(member, partition)

    monkeypatch.setattr(KafkaMember, "watermarks", grown)
    seat.start(5)
    with pytest.raises(BusError, match="lost its end") as raised:
        wait_until(lambda: _polled(seat), 30, "records of the log as it is now")
    assert f"{topic}[0]" in str(raised.value)
    assert "[0, 8)" in str(raised.value)


def _polled(seat: Seat) -> bool:
    seat.poll()
    return bool(seat.records)
