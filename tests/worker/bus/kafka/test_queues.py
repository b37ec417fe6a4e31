"""What is told of librdkafka's queues: of the clients that are there, as they last said."""

from __future__ import annotations

import json

from worker.bus import Outgoing, Queued
from worker.bus.kafka.queues import Queues

NOTHING = Queued(0, 0)


def said(*queues: tuple[int, int]) -> str:
    """Return statistics of a topic with partitions of these queues, and of one without any."""
    partitions = {
        str(number): {"partition": number, "fetchq_cnt": count, "fetchq_size": size}
        for number, (count, size) in enumerate(queues)
    }
    topics = {"a": {"topic": "a", "partitions": partitions}, "b": {"topic": "b"}}
    return json.dumps({"name": "rdkafka#consumer-1", "msg_cnt": 3, "topics": topics})


def test_partitions_share_a_queue_and_consumers_do_not() -> None:
    queues = Queues()
    one, other = queues.consumer(), queues.consumer()
    one.hear(said((5, 700), (5, 700)))
    other.hear(said((2, 40)))
    assert queues.read()["fetched"] == Queued(7, 740)
    assert queues.read()["fetched"] == Queued(7, 740)
    one.hear(said((0, 0)))
    assert queues.read()["fetched"] == Queued(2, 40)
    other.hear(said())
    assert queues.read() == {"fetched": NOTHING, "produced": NOTHING}


def test_a_transaction_is_told_until_the_next() -> None:
    queues = Queues()
    queue = queues.producer()
    queue.hear([Outgoing("a", 0, b"key", b"12345"), Outgoing("a", 0, b"key", None)])
    assert queues.read()["produced"] == Queued(2, 5)
    queue.hear([])
    assert queues.read()["produced"] == NOTHING


def test_clients_that_are_closed_are_forgotten() -> None:
    queues = Queues()
    consumer, producer, left = queues.consumer(), queues.producer(), queues.consumer()
    consumer.hear(said((1, 1)))
    producer.hear([Outgoing("a", 0, None, b"1")])
    left.hear(said((3, 30)))
    queues.leave(consumer, producer, None)
    assert queues.read() == {"fetched": Queued(3, 30), "produced": NOTHING}
