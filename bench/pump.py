"""A plain exactly-once loop on confluent-kafka, for what neardup is compared with.

Consume, transform, produce, send the offsets, commit: as one would write it by hand,
with the consumer and producer settings of our own adapter, and one process.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import NamedTuple

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from worker.bus.kafka import KafkaOptions

__all__ = ["Output", "pump"]

BATCH = 2_000
"""Records a transaction."""

Headers = list[tuple[str, str | bytes | None]]


class Output(NamedTuple):
    """What becomes of a message: a topic, and headers to add."""

    topic: str
    added: Headers


def pump(
    bootstrap: str,
    group: str,
    source: str,
    transform: Callable[[list[Message]], Iterable[Output]],
) -> None:
    """Run until SIGTERM; each message goes to the topic that ``transform`` says."""
    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        del number, frame
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    options = KafkaOptions(bootstrap)
    consumer = Consumer({**options.consuming(group, group), "auto.offset.reset": "earliest"})
    producer = Producer(options.producing(group))
    producer.init_transactions(30)
    consumer.subscribe([source])
    while not stopping:
        messages = consumer.consume(BATCH, 0.1)
        for message in messages:
            if message.error() is not None:
                sys.exit(str(message.error()))
        if messages:
            outputs = transform(messages)
            producer.begin_transaction()
            offsets = _produce(producer, messages, outputs)
            producer.send_offsets_to_transaction(
                [TopicPartition(source, number, at) for number, at in offsets.items()],
                consumer.consumer_group_metadata(),
                10,
            )
            producer.commit_transaction(10)
    consumer.close()


def _produce(
    producer: Producer, messages: list[Message], outputs: Iterable[Output]
) -> dict[int, int]:
    produce = producer.produce
    offsets = {}
    for message, output in zip(messages, outputs, strict=True):
        number = message.partition() or 0
        headers = message.headers()
        produce(
            output.topic,
            message.value(),
            message.key(),
            number,
            timestamp=message.timestamp()[1],
            headers=[*headers, *output.added] if headers else output.added or None,
        )
        offsets[number] = (message.offset() or 0) + 1
    producer.poll(0)
    return offsets
