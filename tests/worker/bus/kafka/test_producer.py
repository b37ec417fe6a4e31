"""A producer after trouble: a group's is replaced, one that writes alone says so."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException, Producer

from worker.bus.kafka import KafkaOptions
from worker.bus.kafka.delivered import Delivered
from worker.bus.kafka.producer import TransactionalProducer
from worker.bus.port import Aborted, Outgoing

NOWHERE = "localhost:1"


def test_who_writes_alone_gets_no_successor_unasked() -> None:
    """Another may have had the name since: what was read before then holds no more."""
    alone = TransactionalProducer(KafkaOptions(NOWHERE), "name", "topic")
    first = alone._producer = Producer({"bootstrap.servers": NOWHERE, "log_level": 0})
    alone._on_log("a connection was lost")
    for _ in range(2):
        with pytest.raises(Aborted, match="not used any more: a connection was lost"):
            alone.commit([Outgoing("topic", 0, None, b"value")])
    assert alone._producer is first
    alone.close()


def test_a_record_above_the_whole_queue_is_refused_and_none_is_waited_for() -> None:
    alone = TransactionalProducer(KafkaOptions(NOWHERE), "name", "topic")
    small = Producer(
        {"bootstrap.servers": NOWHERE, "log_level": 0, "queue.buffering.max.kbytes": 1}
    )
    large = Outgoing("topic", 0, b"large", bytes(2_000))
    delivered = Delivered([large])
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        alone._produce(small, delivered)
    assert delivered.refusals() == [large]
