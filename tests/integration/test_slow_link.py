"""A quota slows what a worker writes: its bursts must fit into their transactions' time."""

import random
import string
import subprocess
from collections.abc import Callable
from contextlib import closing
from typing import Final

import pytest

from localkafka.broker import Kafka, KafkaCluster, wait_until
from localkafka.jars import jars, java
from tests.support.application import ApplicationUnderTest
from tests.support.kafka_harness import KafkaHarness
from worker.bus import BusError, Outgoing
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400), pytest.mark.slow(ci=False)]

QUOTA: Final = 1_000_000
"""Bytes a second of each producer."""
COUNT: Final = 10_000
SIZE: Final = 4_000
FOUND: Final = 3_000
"""Documents until the pace has been found: the first ten seconds pass as if there were no quota."""
DOUBT: Final = "outcome of the transaction unknown"


def limit_producers(cluster: KafkaCluster, rate: int) -> None:
    """Give every client id a quota; confluent-kafka can't, so Kafka's own tool does."""
    command = [java(), "-cp", f"{jars()}/*", "kafka.admin.ConfigCommand"]
    command += ["--bootstrap-server", cluster.bootstrap, "--alter", "--entity-type", "clients"]
    command += ["--entity-default", "--add-config", f"producer_byte_rate={rate}"]
    subprocess.run(command, check=True, capture_output=True)


def test_a_worker_under_a_quota_finds_a_size_that_gets_through(
    kafka_cluster: Callable[..., KafkaCluster], app_id: str
) -> None:
    cluster = kafka_cluster(nodes=1)
    with ApplicationUnderTest(cluster, app_id) as application:
        letters = string.ascii_letters + string.digits
        noise = random.Random(5)
        texts = [(f"d{n}", "".join(noise.choices(letters, k=SIZE))) for n in range(COUNT)]
        application.feed(application.documents(texts))
        limit_producers(cluster, QUOTA)
        application.start("alpha")
        alpha = application.worker("alpha")
        application.audit.reach(FOUND)
        doubts = alpha.output().count(DOUBT)
        application.audit.reach(COUNT, 240)
        assert alpha.output().count(DOUBT) - doubts <= 2


def test_a_member_knows_that_a_quota_applies(
    kafka_cluster: Callable[..., KafkaCluster], app_id: str
) -> None:
    cluster = kafka_cluster(nodes=1)
    bus = KafkaBus(KafkaOptions(cluster.bootstrap))
    harness = KafkaHarness(cluster.bootstrap, bus, app_id)
    topic = harness.topic(1)
    member = harness.alone(topic).member
    noise = random.Random(5)

    def throttled() -> bool:
        member.commit([Outgoing(topic, 0, None, noise.randbytes(QUOTA // 4))], {})
        return member.throttled

    assert not throttled()
    limit_producers(cluster, QUOTA)
    wait_until(throttled, 60, "a quota that applies")
    harness.close()


def test_a_timeout_that_the_brokers_refuse(kafka: Kafka, app_id: str) -> None:
    topic = kafka.create_topic(app_id)
    longer_than_allowed = KafkaOptions(kafka.bootstrap, transaction_timeout_ms=1_000_000)
    with closing(KafkaBus(longer_than_allowed).join(app_id, [topic], "one")) as member:
        polls = (member.poll(1, 1, 0.1) for _ in range(600))
        with pytest.raises(BusError, match=r"transaction_timeout_ms is more than the brokers'"):
            list(polls)
