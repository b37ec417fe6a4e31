"""The Kafka adapter, on confluent-kafka (librdkafka)."""

from __future__ import annotations

from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import PROTECTED, READS, KafkaOptions, ProtectedKeyError

__all__ = ["PROTECTED", "READS", "KafkaBus", "KafkaOptions", "ProtectedKeyError"]
