"""A worker that starts while its brokers are away waits for them, and then works."""

from __future__ import annotations

import pytest

from tests.support.application import ApplicationUnderTest
from tests.support.clusters import ClusterFactory
from tests.support.proof import prove

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.timeout(300)]


def test_a_worker_that_starts_before_its_broker_works_once_that_is_there(
    kafka_cluster: ClusterFactory, app_id: str
) -> None:
    cluster = kafka_cluster(1)
    with ApplicationUnderTest(cluster, app_id) as application:
        application.feed(application.documents([(f"d{n}", f"text number {n}") for n in range(20)]))
        cluster.stop(1)
        application.start("alpha", arguments=("--http", "127.0.0.1:0"))
        alpha = application.worker("alpha")
        alpha.await_text("waiting for Kafka: no broker of ")
        assert alpha.readiness().startswith("503 ")
        cluster.start(1)
        alpha.await_text("Kafka answers again, after ")
        alpha.await_text("instance alpha")
        prove(application)
        assert alpha.stop() == 0
        # Whoever waited said so once, not with each attempt.
        said = alpha.output()
        assert said.count("waiting for Kafka: ") == said.count("Kafka answers again, after ")
