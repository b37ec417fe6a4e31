"""Under KIP-848, a member that was killed keeps its seat until its session ends."""

import logging
import multiprocessing
import os
import signal

import pytest
from confluent_kafka.admin import AdminClient

from localkafka.broker import FAST_FAULTS, Kafka, wait_until
from worker.bus import Member, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.groups import session_seconds

SESSION_SECONDS = int(FAST_FAULTS["group.consumer.session.timeout.ms"]) / 1_000
SHORT_SECONDS = 2.0
"""Twice this would not last until a session's end."""


def _seated(bootstrap: str, group: str, topic: str) -> tuple[Member, frozenset[TopicPartition]]:
    """Take the only seat; return it with what it owns."""
    options = KafkaOptions(bootstrap, protocol="consumer", request_timeout_seconds=SHORT_SECONDS)
    member = KafkaBus(options).join(group, [topic], "alone")
    owned: list[frozenset[TopicPartition]] = []

    def seated() -> bool:
        owned.extend(filter(None, [member.poll(1, 1, 0.1).assignment]))
        return bool(owned)

    wait_until(seated, 4 * SESSION_SECONDS, "the seat")
    return member, owned[0]


def _killed_in_its_seat(bootstrap: str, group: str, topic: str) -> None:
    _seated(bootstrap, group, topic)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_the_patience_follows_the_session(
    kafka: Kafka, app_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.create_topic(app_id)
    lost = multiprocessing.get_context("spawn").Process(
        target=_killed_in_its_seat, args=(kafka.bootstrap, app_id, topic)
    )
    lost.start()
    lost.join(60)
    assert lost.exitcode == -signal.SIGKILL

    with caplog.at_level(logging.INFO):
        member, owned = _seated(kafka.bootstrap, app_id, topic)
    member.close()
    assert owned == {TopicPartition(topic, 0)}
    assert f"for up to {2 * SESSION_SECONDS + SHORT_SECONDS:.0f} s" in caplog.text


def test_a_group_may_have_a_session_of_its_own(kafka: Kafka, app_id: str) -> None:
    assert session_seconds(AdminClient({"bootstrap.servers": kafka.bootstrap}), app_id, 30) == (
        SESSION_SECONDS
    )


def test_nobody_tells(app_id: str) -> None:
    nowhere = AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    assert session_seconds(nowhere, app_id, 0.5) is None
