"""Small batches that unpack to much: records of one letter, in any compression."""

from __future__ import annotations

import json
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from worker.bus import Record, TopicPartition

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_FLUSH_SECONDS: Final = 120.0
_LINGER_MS: Final = 5_000


def write_batch(
    bootstrap: str, place: TopicPartition, codec: str, count: int, size: int, name: str = "bomb"
) -> list[Record]:
    """Write so many documents with texts of this size as one batch; give them with offsets."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "linger.ms": _LINGER_MS,
            "batch.size": 2_000_000_000,
            "batch.num.messages": 1_000_000,
            "message.max.bytes": 1_000_000_000,
            "queue.buffering.max.kbytes": 2_000_000,
            "log_level": 0,
        }
    )
    written: list[Record] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        _, timestamp = message.timestamp()
        written.append(
            Record(*place, message.offset() or 0, timestamp, message.key(), message.value())
        )

    for number in range(count):
        ident = f"{name}-{number}"
        producer.produce(
            place.topic,
            json.dumps({"id": ident, "text": "a" * size}).encode(),
            ident.encode(),
            partition=place.partition,
            on_delivery=delivered,
        )
    assert producer.flush(_FLUSH_SECONDS) == 0
    return written
