"""Whether Kafka answers, as the watcher of topics sees it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from worker.bus.kafka.identities import Identities
from worker.bus.kafka.log_ends import Ends
from worker.bus.kafka.log_watcher import Watched, Watcher


class Cluster:
    """What requests for topics come to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.takes = 0.0
        self.error: int | None = None

    def ask(self, topics: Collection[str], seconds: float) -> dict[str, str]:
        assert seconds > 0
        self.now += self.takes
        if self.error is not None:
            raise KafkaException(KafkaError(self.error))
        return dict.fromkeys(topics, "id")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def watcher(cluster: Cluster) -> Iterator[Watcher]:
    """Yield a watcher of one member, which looks only when it is told to."""
    made = Watcher(
        cluster.ask, lambda _ends, _seconds: None, every_seconds=3_600, clock=lambda: cluster.now
    )
    watched = Watched(Identities(["a"], lambda _topics: {}), Ends())
    made.watch(watched)
    yield made
    made.leave(watched)


def test_silence_counts_from_the_first_request_without_an_answer(
    cluster: Cluster, watcher: Watcher, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    watcher.look()
    cluster.now = 10
    assert watcher.silent_seconds == 0  # Nothing was asked meanwhile.
    cluster.error, cluster.takes = KafkaError._TIMED_OUT, 4
    watcher.look()
    assert watcher.silent_seconds == 4
    cluster.now = 20
    watcher.look()
    assert watcher.silent_seconds == 14
    cluster.error, cluster.takes = None, 1
    watcher.look()
    assert watcher.silent_seconds == 0
    assert [record.message for record in caplog.records] == [
        "the brokers don't describe the topics: Local: Timed out; retrying",
        "the brokers answer again, after 15 s",
    ]


def test_a_refusal_is_an_answer(
    cluster: Cluster, watcher: Watcher, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    cluster.error, cluster.takes = KafkaError.TOPIC_AUTHORIZATION_FAILED, 4
    for _ in range(3):
        watcher.look()
        assert watcher.silent_seconds == 0
    assert len(caplog.records) == 1
