"""What a real broker deletes as time passes: the facts that the in-process log is modelled on."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from localkafka.broker import wait_until
from tests.support.clusters import ClusterFactory


@pytest.mark.slow(ci=False)
def test_an_idle_log_begins_behind_its_last_marker(kafka_cluster: ClusterFactory) -> None:
    """One open segment, never closed: it goes when all in it has expired, with the marker."""
    config = {"log.retention.check.interval.ms": 300, "log.initial.task.delay.ms": 300}
    kafka = kafka_cluster(1, config)
    topic = kafka.create_topic("idle", config={"retention.ms": 2_000})
    client = {"bootstrap.servers": kafka.bootstrap, "log_level": 0}
    writer = Producer({**client, "transactional.id": "writer"})
    writer.init_transactions(60)
    for end in (writer.commit_transaction, writer.abort_transaction):
        writer.begin_transaction()
        writer.produce(topic, b"document")
        writer.flush(60)
        end(60)
    place = TopicPartition(topic, 0)
    reader = Consumer({**client, "group.id": "reader"})
    try:
        wait_until(
            lambda: reader.get_watermark_offsets(place, 10, cached=False) == (4, 4),
            60,
            "an empty log that begins at 4: two records, two markers",
        )
    finally:
        reader.close()
