"""What members and readers have fetched, and what members have produced, as the bus tells it."""

from contextlib import closing

import pytest

from localkafka.broker import Kafka, wait_until
from tests.support.kafka_harness import KafkaHarness
from worker.bus import Outgoing, Queued
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.client_reports import Queues
from worker.bus.kafka.config import KafkaOptions

pytestmark = pytest.mark.kafka

VALUE = bytes(1_000)
RECORDS = 300
SIZE = RECORDS * len(VALUE)
NOTHING = Queued(0, 0)


def test_a_reader_and_a_member_tell_of_their_queues(kafka: Kafka, app_id: str) -> None:
    options = KafkaOptions(kafka.bootstrap, consumer={"statistics.interval.ms": 100})
    bus = KafkaBus(options, Queues())
    harness = KafkaHarness(kafka.bootstrap, bus, app_id)
    topic = harness.topic(2)
    places = sorted(harness.places(topic))
    harness.append(*(Outgoing(topic, number % 2, None, VALUE) for number in range(RECORDS)))
    assert bus.queued() == {"fetched": NOTHING, "produced": NOTHING}
    with closing(bus.log_reader(app_id, [topic])) as reader:
        for place in places:
            reader.start(place, 0)

        def fetched() -> bool:
            reader.read(1, 1 << 20, 0.05)
            return bus.queued()["fetched"].size > SIZE / 2

        wait_until(fetched, 30, "a queue of what was fetched")
        queue = bus.queued()["fetched"]
        assert queue.size <= SIZE, "a queue that partitions share was counted for each"
        assert queue.size % len(VALUE) == 0
        # Statistics that nobody has heard yet, and the ends of partitions, are messages, too.
        assert queue.messages >= queue.size // len(VALUE)

        def taken() -> bool:
            reader.read(RECORDS, 1 << 30, 0.05)
            return bus.queued()["fetched"] == NOTHING

        wait_until(taken, 30, "an empty queue")
    seat = harness.alone(topic)
    seat.member.commit([Outgoing(topic, 0, None, VALUE)] * 3, {places[0]: 0})
    assert bus.queued()["produced"] == Queued(3, 3 * len(VALUE))
    harness.close()
    assert bus.queued() == {"fetched": NOTHING, "produced": NOTHING}
