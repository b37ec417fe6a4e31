"""Reads a compacted topic that has one partition, from end to end."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place

from worker.bus import BusError

__all__ = ["PARTITION", "records"]

PARTITION = 0
"""The only one that is used."""

_SILENCE_SECONDS = 15.0


def records(
    consumer: Consumer, topic: str, low: int, high: int
) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """Yield the offset, key and value of all records up to an end.

    The last ones may be markers, or compacted away. So the consumer must tell where a partition
    ends (``enable.partition.eof``).

    Raises:
        BusError: the topic brings nothing.
        KafkaException: Kafka refused.
    """
    if low >= high:
        return
    consumer.assign([Place(topic, PARTITION, low)])
    heard = monotonic()
    while True:
        message = consumer.poll(0.5)
        if message is None:
            if monotonic() - heard > _SILENCE_SECONDS:
                raise BusError(f"{topic} brings nothing for {_SILENCE_SECONDS:.0f} s")
            continue
        error, offset = message.error(), message.offset() or 0
        if error is None:
            heard = monotonic()
            yield offset, message.key(), message.value()
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 -- librdkafka's own code
            if offset >= high:
                return
        elif not error.retriable():
            raise KafkaException(error)
