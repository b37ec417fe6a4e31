"""Which Kafka the tests run on, and how they get clusters that they may break."""

import os
from collections.abc import Callable
from typing import Final

from localkafka.broker import KafkaCluster

EXTERNAL: Final = os.environ.get("NEARDUP_TEST_KAFKA")
"""The address of a broker that runs already, and isn't to be broken."""

ClusterFactory = Callable[..., KafkaCluster]
"""Takes what `KafkaCluster` takes: nodes, and a configuration."""
