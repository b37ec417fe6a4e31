"""Errors wait for a later poll, and those of the whole client are not lost with its partitions."""

from confluent_kafka import KafkaError, Message

from worker.bus.kafka.pending import PendingErrors
from worker.bus.port import TopicPartition


def error(code: int, topic: str | None = None, partition: int = -1) -> Message:
    return Message(topic=topic, partition=partition, error=KafkaError(code))


def test_errors_of_partitions_are_forgotten_when_these_are_sought() -> None:
    errors = PendingErrors()
    errors.add(error(KafkaError._BAD_MSG, "t", 1))
    errors.add(error(KafkaError._FATAL))
    assert errors.broken == {TopicPartition("t", 1)}
    errors.sought()
    assert errors.broken == set()
    (left,) = errors.take()
    assert left.error() == KafkaError._FATAL


def test_nothing_is_left_of_a_client_that_is_replaced() -> None:
    errors = PendingErrors()
    errors.add(error(KafkaError._FATAL))
    errors.clear()
    assert list(errors.take()) == []
