"""Which brokers a client says that it knows, and who hears it."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Consumer

from localkafka.broker import wait_until
from worker.bus.kafka.client_reports import ConsumerQueue, KnownBrokers, reaches_brokers, telling
from worker.bus.kafka.config import KafkaOptions

NOWHERE = KafkaOptions("localhost:1", consumer={"statistics.interval.ms": 50})


def said(*sources: str) -> str:
    """Return statistics of a client that knows brokers of these kinds."""
    brokers = {f"{source}/1": {"source": source, "state": "UP"} for source in sources}
    return json.dumps({"name": "rdkafka#consumer-1", "brokers": brokers})


@pytest.mark.parametrize(
    ("statistics", "lost"),
    [
        ([], False),
        ([said("logical")], False),
        ([said("logical"), said("logical")], True),
        ([said(), said(), said()], True),
        ([said("logical"), said("configured", "logical"), said("logical")], False),
        ([said("learned"), said("learned", "logical")], False),
        ([said("logical"), said("logical"), said("learned")], False),
    ],
)
def test_a_client_without_any_broker_is_lost_unless_it_passes(
    statistics: list[str], *, lost: bool
) -> None:
    known = KnownBrokers()
    for one in statistics:
        known.hear(one)
    assert known.lost is lost


@pytest.mark.parametrize("given", [{}, {"statistics.interval.ms": 50}])
def test_a_user_may_have_statistics_more_often(given: dict[str, int]) -> None:
    options = KafkaOptions("localhost:1", consumer=given)
    config = telling(options.reader_config("group"))
    assert config["statistics.interval.ms"] == given.get("statistics.interval.ms", 5_000)


def test_a_client_tells_all_who_listen_and_knows_brokers_that_it_cant_reach() -> None:
    heard: list[str] = []
    known, queue = KnownBrokers(), ConsumerQueue()
    config = telling(NOWHERE.reader_config("group"), heard.append, known.hear, queue.hear)
    consumer = Consumer({**config, "log_level": 0})
    wait_until(lambda: bool(consumer.consume(1, 0.01)) or len(heard) > 5, 20, "statistics")
    assert json.loads(heard[0])["type"] == "consumer"
    assert json.loads(heard[-1])["brokers"]
    assert not known.lost
    assert queue.read() == (0, 0)
    assert not reaches_brokers(consumer, "topic")
    consumer.close()
