"""Partitions that a group takes away, with a client that reaches no broker."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from worker.bus.kafka.assignment import Assignment
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.ends import Ends

PARTITIONS = [TopicPartition("in", 0), TopicPartition("in", 1)]


@pytest.fixture
def consumer() -> Iterator[Consumer]:
    made = Consumer(KafkaOptions("127.0.0.1:1").member_config("g", "one"))
    yield made
    made.close()


def test_what_a_member_has_of_other_topics_is_assigned_at_once() -> None:
    """Under KIP-848 the group says only what changes, which may be nothing."""
    options = KafkaOptions("127.0.0.1:1", protocol="consumer")
    consumer = Consumer(options.member_config("g", "one"))
    assignment = Assignment("g", Ends(), eager=False)
    assignment.subscribe(consumer, ["in", "old"])
    assignment.change(["in", "old"])
    assert not assignment.changed  # The group has not said anything yet.
    assignment._on_assign(consumer, [*PARTITIONS, TopicPartition("old", 0)])
    assert len(assignment.take()) == 3
    assignment.change(["in"])
    assert assignment.changed
    assert assignment.take() == {("in", 0), ("in", 1)}
    consumer.close()


def test_what_was_lost_is_told_once_and_so_is_its_return(
    consumer: Consumer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "worker.bus.kafka.assignment")
    now = 5.0
    assignment = Assignment("g", Ends(), eager=True, clock=lambda: now)
    assignment.subscribe(consumer, ["in"])
    assignment._on_assign(consumer, PARTITIONS)
    assert not assignment.revoked
    assert assignment.take() == {("in", 0), ("in", 1)}
    assignment._on_revoke(consumer, PARTITIONS)
    assignment._on_assign(consumer, PARTITIONS)
    assert not caplog.records
    assignment._on_lost(consumer, PARTITIONS)
    assert assignment.revoked
    assert assignment.lost_at == 5
    now = 29.0
    assignment._on_assign(consumer, PARTITIONS[:1])
    assert (assignment.revoked, assignment.lost_at) == (False, None)
    assert [record.message for record in caplog.records] == [
        "group g: 2 partitions lost: the session has ended",
        "group g: 1 partition assigned again, after 24.0 s",
    ]
