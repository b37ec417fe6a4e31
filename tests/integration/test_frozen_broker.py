"""The only broker freezes for longer than a session: a worker says so, and goes on."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from localkafka.broker import wait_until
from tests.support.application import ApplicationUnderTest
from tests.support.clusters import ClusterFactory
from tests.support.corpus import corpus
from tests.support.proof import prove
from tests.support.worker_process import WorkerProcess

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600), pytest.mark.slow(ci=False)]

SECONDS = 120.0
SESSION = 6.0
"""Seconds of silence after which a worker under test isn't ready."""
AN_ANSWER = 2.0
"""More seconds than a request takes while the broker answers."""


def metrics(worker: WorkerProcess, name: str) -> list[float]:
    """Return all samples of a metric."""
    address = worker.current().partition("metrics and health on ")[2].split()[0]
    with urllib.request.urlopen(f"{address}/metrics", timeout=10) as answer:  # noqa: S310 -- ours
        text = answer.read().decode()
    return [float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)]


@contextmanager
def diagnosed(worker: WorkerProcess) -> Iterator[None]:
    """Have whoever waits in vain say what state the worker is in."""
    try:
        yield
    except TimeoutError as error:
        assigned = "not to be had"
        with suppress(OSError, IndexError):
            assigned = str(metrics(worker, "neardup_assigned_partitions"))
        error.add_note(f"assigned partitions: {assigned}\n{worker.diagnosis()}")
        raise


def await_answers(worker: WorkerProcess) -> None:
    """Wait until a broker has answered of late."""
    wait_until(
        lambda: metrics(worker, "neardup_kafka_silent_seconds") < [AN_ANSWER], SECONDS, "an answer"
    )


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_frozen_broker_is_seen(kafka_cluster: ClusterFactory, app_id: str, protocol: str) -> None:
    cluster = kafka_cluster(1)
    settings = {"kafka": {"group_protocol": protocol}}
    with ExitStack() as stack:
        application = stack.enter_context(ApplicationUnderTest(cluster, app_id, settings=settings))
        application.seat("alpha")
        alpha = application.worker("alpha")
        stack.enter_context(diagnosed(alpha))
        documents = corpus(200, 3)
        application.feed(application.documents(documents[:100]))
        application.audit.reach(100)
        await_answers(alpha)
        cluster.pause(1)
        try:
            wait_until(lambda: '"unanswered": true' in alpha.readiness(), SECONDS, "a 503")
            assert alpha.readiness().startswith("503 ")
            # The metric is set every second, and the page knows at once.
            wait_until(
                lambda: metrics(alpha, "neardup_kafka_silent_seconds") > [SESSION],
                SECONDS,
                "as much",
            )
            if protocol == "classic":  # Under KIP-848 only the brokers know when a session ends.
                # A stage that is in a transaction sees it when that has ended.
                wait_until(
                    lambda: 0 in metrics(alpha, "neardup_assigned_partitions"), SECONDS, "a loss"
                )
        finally:
            cluster.resume(1)
        wait_until(alpha.ready, SECONDS, "a 200")
        await_answers(alpha)
        wait_until(
            lambda: 0 not in metrics(alpha, "neardup_assigned_partitions"),
            SECONDS,
            "all partitions",
        )
        alpha.await_text("the brokers answer again, after ")
        application.feed(application.documents(documents[100:], 100))
        prove(application)
