"""A producer that has not heard of a partition: its transaction is rolled back; the next knows."""

from contextlib import closing

import pytest
from confluent_kafka.cimpl import NewPartitions  # Typed there; the admin module passes it on.

from localkafka.broker import Kafka
from tests.support.audit import read_all
from worker.bus import Aborted, Outgoing, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions

pytestmark = pytest.mark.kafka


def test_a_record_for_a_partition_that_was_just_added(kafka: Kafka, app_id: str) -> None:
    topic = kafka.create_topic(app_id)
    bus = KafkaBus(KafkaOptions(kafka.bootstrap))
    old, new = (Outgoing(topic, number, None, b"%d" % number) for number in range(2))
    with closing(bus.log_writer(app_id, topic)) as writer:
        writer.renew()
        writer.commit([old])
        admin = kafka.admin()  # Held: its requests die with it.
        admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
        with pytest.raises(Aborted, match="Unknown partition"):
            writer.commit([old, new])
        writer.renew()
        writer.commit([new])
    values = [
        [one.value for one in read_all(kafka.bootstrap, TopicPartition(topic, number))]
        for number in range(2)
    ]
    assert values == [[b"0"], [b"1"]]
