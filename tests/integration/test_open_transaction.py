"""A worker that was killed in a transaction starts again at once: it ends that by itself."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from tests.integration.conftest import Launch
from tests.support.proof import prove

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(200), pytest.mark.slow]

LONG_MS = 120_000
"""Longer than a start waits for anybody's transaction."""


def test_a_worker_ends_what_it_had_left_open_before_it_asks_for_offsets(launch: Launch) -> None:
    application = launch()
    topology = application.topology
    group = topology.group("route")
    ghost = Producer(
        {
            "bootstrap.servers": application.kafka.bootstrap,
            "transactional.id": f"{group}.alpha",
            "transaction.timeout.ms": LONG_MS,
            "log_level": 0,
        }
    )
    ghost.init_transactions(30)
    ghost.begin_transaction()
    consumer = Consumer({"bootstrap.servers": application.kafka.bootstrap, "group.id": group})
    ghost.send_offsets_to_transaction(
        [Place(topology.documents, 0, 0)], consumer.consumer_group_metadata(), 30
    )
    consumer.close()
    application.start("alpha")
    application.worker("alpha").await_text("instance alpha", 60)
    application.feed(application.documents([(f"d{n}", f"text number {n}") for n in range(20)]))
    prove(application)
