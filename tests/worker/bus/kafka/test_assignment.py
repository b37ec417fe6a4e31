"""Partitions that a group takes away, with a client that reaches no broker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from worker.bus.kafka.assignment import Assignment
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.log_ends import Ends

Told = Callable[[Consumer, list[TopicPartition]], None]


class Group(Consumer):
    """A consumer that a test tells what its group has given and taken."""

    def subscribe(
        self,
        topics: list[str],
        on_assign: Told | None = None,
        on_revoke: Told | None = None,
        on_lost: Told | None = None,
    ) -> None:
        """Keep whom to tell; no broker is asked."""
        assert topics
        assert on_assign
        assert on_revoke
        assert on_lost
        self.assign_to, self.revoke, self.lose = on_assign, on_revoke, on_lost


PARTITIONS = [TopicPartition("in", 0), TopicPartition("in", 1)]


@pytest.fixture
def consumer() -> Iterator[Group]:
    made = Group(KafkaOptions("127.0.0.1:1").member_config("g", "one"))
    yield made
    made.close()


def test_what_a_member_has_of_other_topics_is_assigned_at_once() -> None:
    """Under KIP-848 the group says only what changes, which may be nothing."""
    options = KafkaOptions("127.0.0.1:1", protocol="consumer")
    consumer = Group(options.member_config("g", "one"))
    assignment = Assignment("g", Ends(), eager=False)
    assignment.subscribe(consumer, ["in", "old"])
    assignment.change(["in", "old"])
    assert not assignment.changed  # The group has not said anything yet.
    consumer.assign_to(consumer, [*PARTITIONS, TopicPartition("old", 0)])
    assert len(assignment.take()) == 3
    assignment.change(["in"])
    assert assignment.changed
    assert assignment.take() == {("in", 0), ("in", 1)}
    consumer.close()


def test_what_was_lost_is_told_once_and_so_is_its_return(
    consumer: Group, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "worker.bus.kafka.assignment")
    now = 5.0
    assignment = Assignment("g", Ends(), eager=True, clock=lambda: now)
    assignment.subscribe(consumer, ["in"])
    consumer.assign_to(consumer, PARTITIONS)
    assert not assignment.revoked
    assert assignment.take() == {("in", 0), ("in", 1)}
    consumer.revoke(consumer, PARTITIONS)
    consumer.assign_to(consumer, PARTITIONS)
    assert not caplog.records
    consumer.lose(consumer, PARTITIONS)
    assert assignment.revoked
    assert assignment.lost_at == 5
    now = 29.0
    consumer.assign_to(consumer, PARTITIONS[:1])
    assert (assignment.revoked, assignment.lost_at) == (False, None)
    assert [record.message for record in caplog.records] == [
        "group g: 2 partitions lost: the session has ended",
        "group g: 1 partition assigned again, after 24.0 s",
    ]
