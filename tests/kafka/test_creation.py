"""New topics: brokers elect the leaders of many partitions one after the other."""

import pytest

from localkafka.broker import Kafka
from worker.admin.cluster import Cluster
from worker.bus import TopicPartition
from worker.bus.kafka.config import KafkaOptions


@pytest.mark.slow
def test_many_partitions_take_longer_than_one_answer(kafka: Kafka, app_id: str) -> None:
    """Each request may take a moment only; that all partitions have leaders takes longer."""
    cluster = Cluster(KafkaOptions(kafka.bootstrap), seconds=0.3)
    topics = {f"{app_id}-{number}": (200, {"retention.ms": "-1"}) for number in range(3)}
    assert cluster.create(topics, 1) == list(topics)
    patient = Cluster(KafkaOptions(kafka.bootstrap))
    found = patient.ranges(dict.fromkeys(topics, 200))
    assert found == {TopicPartition(name, n): (0, 0) for name in topics for n in range(200)}
    _, states = patient.topics(topics)
    assert {state.settings["retention.ms"] for state in states.values() if state} == {"-1"}
    patient.delete(topics)
