"""The buses that the suite runs on."""

from collections.abc import Iterator

import pytest

from localkafka.broker import Kafka
from tests.support.bus_harness import Harness, MemoryHarness
from tests.support.kafka_harness import KafkaHarness
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions

BUSES = ["memory", pytest.param("kafka", marks=pytest.mark.kafka)]

# For what takes seconds on Kafka: rebalances of a real group, above all.
MEMORY_FIRST = ["memory", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.slow])]

# Short, so that the group soon goes on without a member that doesn't poll.
SILENCE_MS = 6_000


@pytest.fixture(params=BUSES)
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    """Yield a bus with its surroundings; all that joined it is closed at the end.

    A test may ask for ``kafka-consumer``, too, for the newer protocol of groups.
    """
    harness = MemoryHarness() if request.param == "memory" else _kafka_harness(request)
    yield harness
    harness.close()


def _kafka_harness(request: pytest.FixtureRequest) -> Harness:
    """Start the broker only for those who ask for it."""
    kafka: Kafka = request.getfixturevalue("kafka")
    app_id: str = request.getfixturevalue("app_id")
    options = KafkaOptions(
        bootstrap=kafka.bootstrap,
        protocol="consumer" if request.param == "kafka-consumer" else "classic",
        session_timeout_ms=SILENCE_MS,
        max_poll_interval_ms=SILENCE_MS,
    )
    return KafkaHarness(kafka.bootstrap, KafkaBus(options), app_id)
