"""A member that is fenced has been replaced, or has missed the answer to its own request."""

import gc
import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from confluent_kafka import Consumer, Producer

from chaos.rule import Rule
from chaos.running import Ground
from chaos.wire import Api
from localkafka.broker import wait_until
from tests.support.clients import COUNTABLE, await_clients, clients_in_use
from worker.bus import Fenced, Member, OutcomeUnknown, Outgoing, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.producer import transactional_id

pytestmark = [pytest.mark.kafka, pytest.mark.slow(ci=False)]


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


def replaced(stack: ExitStack, ground: Ground, group: str, topic: str, *, trouble: bool) -> Member:
    """Return a member of the classic protocol that doesn't know yet that a namesake has its seat.

    With ``trouble``, it has lost the answer to a heartbeat before.
    """
    cluster, proxies = ground
    bus = KafkaBus(KafkaOptions(cluster.proxied_bootstrap, protocol="classic"))
    late = stack.enter_context(closing(bus.join(group, [topic], "alpha")))
    wait_until(lambda: assigned(late), 30, "an assignment")
    if trouble:
        rule = Rule(frozenset({Api.HEARTBEAT}), "cut", "response", client=group, limit=1)
        with proxies.rule(rule):
            wait_until(lambda: rule.hits == 1, 30, "a lost heartbeat")
    namesake = Consumer(KafkaOptions(cluster.bootstrap).member_config(group, "alpha"))
    stack.callback(namesake.close)
    namesake.subscribe([topic])
    wait_until(lambda: bool(namesake.poll(0.1) or namesake.assignment()), 30, "an assignment")
    return late


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
    topic = one_node[0].create_topic(app_id)
    with ExitStack() as stack:
        late = replaced(stack, one_node, app_id, topic, trouble=trouble)
        before = clients_in_use()
        assert outcome(late, topic) == (OutcomeUnknown if trouble else Fenced)
        if trouble:
            late.renew()
            wait_until(lambda: assigned(late), 30, "another assignment")
            if COUNTABLE:
                await_clients(before)


def test_a_fatal_error_right_after_the_partitions_are_lost_is_not_missed(
    one_node: Ground, app_id: str
) -> None:
    """Both come in one poll. The member must not stay without a seat, waiting for nothing.

    Its heartbeats are lost until the group gives its seat to a namesake. It then hears that its
    partitions are lost, and, when it joins again, that the seat is taken.
    """
    cluster, proxies = one_node
    topic = cluster.create_topic(app_id)
    options = KafkaOptions(cluster.proxied_bootstrap, protocol="consumer")
    with ExitStack() as stack:
        late = stack.enter_context(closing(KafkaBus(options).join(app_id, [topic], "alpha")))
        wait_until(lambda: assigned(late), 30, "an assignment")
        direct = KafkaBus(KafkaOptions(cluster.bootstrap, protocol="consumer"))
        namesake = stack.enter_context(closing(direct.join(app_id, [topic], "alpha")))
        heartbeats = frozenset({Api.CONSUMER_GROUP_HEARTBEAT})
        with proxies.rule(Rule(heartbeats, "drop", "request", client=app_id)):
            wait_until(lambda: assigned(namesake), 60, "a namesake with the seat")
        wait_until(lambda: late.poll(1, 1, 10.0).assignment == frozenset(), 30, "a loss")
        namesake.close(leave=True)
        wait_until(lambda: assigned(late), 30, "another assignment")


@pytest.mark.parametrize("trouble", [True, False])
def test_one_that_reads_other_topics_before_it_hears_of_it(
    one_node: Ground, app_id: str, caplog: pytest.LogCaptureFixture, *, trouble: bool
) -> None:
    """Then librdkafka refuses to subscribe, and says only that the client has failed."""
    caplog.set_level(logging.INFO, "worker.bus.kafka.assignment")
    topic, other = (one_node[0].create_topic(f"{app_id}{suffix}") for suffix in ("", "-other"))
    with ExitStack() as stack:
        late = replaced(stack, one_node, app_id, topic, trouble=trouble)

        def refused() -> bool:
            late.subscribe([topic, other])
            return "Failed to set subscription" in caplog.text

        wait_until(refused, 30, "a consumer that has failed")
        assert not late.seated
        if trouble:
            wait_until(lambda: assigned(late), 60, "another assignment")
            assert late.committed([TopicPartition(other, 0)]) == {TopicPartition(other, 0): None}
        else:
            with pytest.raises(Fenced, match="Another worker runs under this instance's name"):
                wait_until(lambda: assigned(late), 30, "being fenced")


def test_a_member_whose_producer_is_fenced_while_it_produces_goes_on(
    one_node: Ground, app_id: str
) -> None:
    """As by a coordinator that gave a transaction up: the group still has the member."""
    cluster, _ = one_node
    topic = cluster.create_topic(app_id)
    bus = KafkaBus(KafkaOptions(cluster.bootstrap))
    with closing(bus.join(app_id, [topic], "alpha")) as member:
        wait_until(lambda: assigned(member), 30, "an assignment")
        other = {"transactional.id": transactional_id(app_id, "alpha")}
        Producer({"bootstrap.servers": cluster.bootstrap, **other}).init_transactions(30)
        # The broker's answer to the first of them comes before the last is queued.
        with pytest.raises(OutcomeUnknown):
            member.commit([Outgoing(topic, 0, None, b"")] * 90_000, {TopicPartition(topic, 0): 1})
        member.renew()
        member.commit([Outgoing(topic, 0, None, b"")], {TopicPartition(topic, 0): 1})
