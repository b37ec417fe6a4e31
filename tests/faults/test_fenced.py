"""A member that is fenced has been replaced, or has missed the answer to its own request."""

import gc
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from confluent_kafka import Consumer

from localkafka.broker import wait_until
from tests.faults.rule import Rule
from tests.faults.running import Ground
from tests.faults.wire import Api
from tests.support.clients import COUNTABLE, await_clients, clients_in_use
from worker.bus.kafka import KafkaOptions
from worker.bus.kafka.bus import KafkaBus
from worker.bus.port import Fenced, Member, OutcomeUnknown, Outgoing, TopicPartition

pytestmark = [pytest.mark.kafka, pytest.mark.exhaustive]


def assigned(member: Member) -> bool:
    """Poll, and tell whether partitions came."""
    return bool(member.poll(1, 1, 0.1).assignment)


def outcome(member: Member, topic: str) -> type[Exception] | None:
    """Commit, and give what that raised, without what that holds."""
    try:
        member.commit([Outgoing(topic, 0, None, b"")], {TopicPartition(topic, 0): 1})
    except (Fenced, OutcomeUnknown) as error:
        return type(error)
    return None


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("trouble", [True, False])
def test_trouble_that_was_not_heard_of_yet_counts(
    one_node: Ground, app_id: str, *, trouble: bool
) -> None:
    """The member has not polled since, and learns from its commit that it is fenced.

    Its clients are replaced, and none stays.
    """
    cluster, proxies = one_node
    topic = cluster.create_topic(app_id)
    with ExitStack() as stack:
        bus = KafkaBus(KafkaOptions(cluster.proxied_bootstrap))
        late = stack.enter_context(closing(bus.join(app_id, [topic], "alpha")))
        wait_until(lambda: assigned(late), 30, "an assignment")
        if trouble:
            rule = Rule(frozenset({Api.HEARTBEAT}), "cut", "response", client=app_id, limit=1)
            with proxies.rule(rule):
                wait_until(lambda: rule.hits == 1, 30, "a lost heartbeat")
        namesake = Consumer(KafkaOptions(cluster.bootstrap).member_config(app_id, "alpha"))
        stack.callback(namesake.close)
        namesake.subscribe([topic])
        wait_until(lambda: bool(namesake.poll(0.1) or namesake.assignment()), 30, "an assignment")
        before = clients_in_use()
        assert outcome(late, topic) == (OutcomeUnknown if trouble else Fenced)
        if trouble:
            late.renew()
            wait_until(lambda: assigned(late), 30, "another assignment")
            if COUNTABLE:
                await_clients(before)
