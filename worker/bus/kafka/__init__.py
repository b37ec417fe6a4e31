"""The Kafka adapter, on confluent-kafka (librdkafka).

The options are here, and the bus is in `worker.bus.kafka.bus`: the settings need the options, and
a command that doesn't use Kafka must not load the client.
"""

from __future__ import annotations
