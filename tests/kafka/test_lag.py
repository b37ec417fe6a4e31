"""Lag where nothing is fetched: found out by asking, and without counting markers."""

import pytest

from localkafka.broker import Kafka, wait_until
from tests.support.kafka_harness import KafkaHarness
from worker.bus import Outgoing
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions


@pytest.mark.slow
def test_markers_of_transactions_are_no_lag(kafka: Kafka, app_id: str) -> None:
    """A committed one, an aborted one, and records that wait; nothing is ever fetched."""
    harness = KafkaHarness(kafka.bootstrap, KafkaBus(KafkaOptions(kafka.bootstrap)), app_id)
    topic, group = harness.topic(3), harness.name("group")
    committed, aborted, waiting = sorted(harness.places(topic))
    for place in harness.places(topic):
        transaction = harness.open_transaction()
        transaction.append(*(Outgoing(*place, None, b"") for _ in range(3)))
        (transaction.abort if place == aborted else transaction.commit)()
    harness.commit_offsets(group, {committed: 3, aborted: 0, waiting: 1})
    seat = harness.alone(topic, group=group)
    places = sorted(harness.places(topic))
    assert seat.member.committed(places) == {committed: 3, aborted: 0, waiting: 1}

    def shown() -> bool:
        seat.poll()
        return seat.member.lag() == {committed: 0, aborted: 0, waiting: 3}

    wait_until(shown, 60, "lags without markers")
    # An open transaction holds back what comes after it, and is not read either.
    opened = harness.open_transaction()
    opened.append(Outgoing(*committed, None, b"open"))
    harness.append(Outgoing(*aborted, None, b"a"), Outgoing(*committed, None, b"b"))

    def grown() -> bool:
        seat.poll()
        return seat.member.lag() == {committed: 0, aborted: 5, waiting: 3}

    wait_until(grown, 60, "lags of committed records")
    opened.abort()
    harness.close()
