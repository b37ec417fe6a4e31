"""What a seat in a group costs while there is nothing to do."""

from contextlib import ExitStack, closing

import pytest

from localkafka.broker import Kafka, wait_until
from tests.support.clients import COUNTABLE, await_clients, clients_in_use
from worker.bus import Member, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions

pytestmark = pytest.mark.skipif(not COUNTABLE, reason="threads are counted in /proc")


def test_who_owns_nothing_keeps_no_producer(kafka: Kafka, app_id: str) -> None:
    topic = kafka.create_topic(app_id)
    owned: dict[str, frozenset[TopicPartition]] = {}
    bus = KafkaBus(KafkaOptions(kafka.bootstrap))
    assert bus.partitions([topic]) == {topic: 1}  # By its one admin client, which stays.
    before = clients_in_use()

    with ExitStack() as stack:
        members: dict[str, Member] = {}

        def settled(owners: dict[str, int]) -> bool:
            for name, member in members.items():
                assignment = member.poll(1, 1, 0.1).assignment
                if assignment is not None:
                    owned[name] = assignment
            return {name: len(partitions) for name, partitions in owned.items()} == owners

        members["b"] = stack.enter_context(closing(bus.join(app_id, [topic], "b")))
        wait_until(lambda: settled({"b": 1}), 30, "the partition")
        await_clients(before + 2)
        # The first by name gets the only one.
        members["a"] = stack.enter_context(closing(bus.join(app_id, [topic], "a")))
        wait_until(lambda: settled({"a": 1, "b": 0}), 30, "another owner")
        await_clients(before + 3)
