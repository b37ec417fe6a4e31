"""A plain exactly-once loop on confluent-kafka, for the programs that neardup is compared with.

Consume, transform, produce, send the offsets, commit: a hand-written loop in one process,
with the consumer and producer settings of our own adapter.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import NamedTuple

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from worker.bus.kafka.config import KafkaOptions

BATCH = 2_000
"""Records per transaction."""

Headers = list[tuple[str, str | bytes | None]]


class Output(NamedTuple):
    """Where a message goes: a topic, and headers to add."""

    topic: str
    added: Headers


def copy(
    bootstrap: str,
    group: str,
    source: str,
    transform: Callable[[list[Message]], Iterable[Output]],
) -> None:
    """Run until SIGTERM; ``transform`` returns the output of each message of a batch."""
    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        del number, frame
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    options = KafkaOptions(bootstrap)
    consumer = Consumer({**options.member_config(group, group), "auto.offset.reset": "earliest"})
    producer = Producer(options.producer_config(group))
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
