"""A transaction that the brokers commit in one partition, and abort in the others."""

from collections.abc import Iterator
from time import monotonic
from typing import Final

import pytest
from confluent_kafka import Producer

from chaos.rule import Rule
from chaos.running import Ground
from chaos.wire import Api, Header
from tests.support.breadth import mostly_slow
from tests.support.bus_seats import Seat
from tests.support.kafka_harness import KafkaHarness
from tests.support.markers import end_in, open_in
from worker.bus import Effect, OutcomeUnknown, Outgoing, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.producer import transactional_id
from worker.loop.options import LoopOptions
from worker.loop.transactions import Transactions
from worker.probe import UNWATCHED

pytestmark = pytest.mark.kafka

OFFSETS = TopicPartition("__consumer_offsets", 0)


@pytest.fixture
def harness(one_node: Ground, app_id: str) -> Iterator[KafkaHarness]:
    """Yield a cluster whose bus is behind the proxy."""
    cluster, _ = one_node
    options = KafkaOptions(cluster.proxied_bootstrap)
    harness = KafkaHarness(cluster.bootstrap, KafkaBus(options), app_id)
    yield harness
    harness.close()


def values(harness: KafkaHarness, topic: str) -> list[bytes | None]:
    return [record.value for record in harness.read_committed(topic)]


def sent(sink: str, other: str) -> list[Outgoing]:
    """Return a record for each of two partitions of a topic, and one with only a key."""
    return [
        Outgoing(sink, 0, None, b"a"),
        Outgoing(sink, 1, None, b"b"),
        Outgoing(sink, 0, None, b"c"),
        Outgoing(other, None, b"key", b"d"),
    ]


def roll_back(bootstrap: str, group: str) -> None:
    """Have the coordinator abort the open transaction of the group's only member."""
    name = transactional_id(group, "alone")
    Producer({"bootstrap.servers": bootstrap, "transactional.id": name}).init_transactions(30)


KEPT: Final = ("a partition of a sink", "the offsets", "the keyed record")


@pytest.mark.parametrize("kept", mostly_slow(KEPT, "the keyed record"))
def test_a_torn_transaction_is_seen_and_completed(
    one_node: Ground, harness: KafkaHarness, kept: str
) -> None:
    cluster, proxies = one_node
    source, sink, other = harness.topic(), harness.topic(2), harness.topic()
    group = harness.name("group")
    seat: Seat = harness.alone(source, group=group)
    (place,) = seat.owned
    member = seat.member
    ending = {
        "a partition of a sink": TopicPartition(sink, 0),
        "the offsets": OFFSETS,
        "the keyed record": TopicPartition(other, 0),
    }[kept]
    effects: list[Effect] = []

    def effect() -> Effect:
        effects.append(member.effect())
        return effects[-1]

    transactions = Transactions(
        "route",
        member.renew,
        effect,
        options=LoopOptions(),
        probe=UNWATCHED,
        clock=monotonic,
    )

    def tear(_: Header) -> None:
        end_in(cluster.bootstrap, ending, commit=True)
        roll_back(cluster.bootstrap, group)

    rule = Rule(frozenset({Api.END_TXN}), "delay", "request", limit=1, on_hit=tear)
    with proxies.rule(rule):
        ended = transactions.see_through(sent(sink, other), {place: 5}, member.commit)
    assert rule.hits == 1
    first = {
        "a partition of a sink": Effect([True, False, True, False], offsets=False),
        "the offsets": Effect([False] * 4, offsets=True),
        "the keyed record": Effect([False, False, False, True], offsets=False),
    }[kept]
    assert effects == [first]
    assert ended.outcome == "completed"
    assert sorted(values(harness, sink), key=str) == [b"a", b"b", b"c"]
    assert values(harness, other) == [b"d"]
    assert member.committed([place]) == {place: 5}
    assert open_in(cluster.bootstrap, TopicPartition(sink, 1)) == []


@pytest.mark.slow
def test_a_transaction_that_ended_everywhere_alike_is_not_torn(
    one_node: Ground, harness: KafkaHarness
) -> None:
    cluster, proxies = one_node
    source, sink, other = harness.topic(), harness.topic(2), harness.topic()
    group = harness.name("group")
    seat: Seat = harness.alone(source, group=group)
    (place,) = seat.owned
    member = seat.member
    assert member.effect() == Effect()
    rule = Rule(
        frozenset({Api.END_TXN}),
        "delay",
        "request",
        limit=1,
        on_hit=lambda _: roll_back(cluster.bootstrap, group),
    )
    with proxies.rule(rule), pytest.raises(OutcomeUnknown):
        member.commit(sent(sink, other), {place: 2})
    member.renew()
    assert member.effect() == Effect([False] * 4, offsets=False)
    rule = Rule(frozenset({Api.END_TXN}), "drop", "response", limit=1)
    with proxies.rule(rule), pytest.raises(OutcomeUnknown):
        member.commit(sent(sink, other), {place: 2})
    member.renew()
    assert member.effect() == Effect([True] * 4, offsets=True)
