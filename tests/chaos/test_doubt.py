"""Whoever commits is told if the end of the transaction was in doubt on its way.

librdkafka asks again by itself, and then says that all is well. But the first request may
still be under way, and would end the next transaction (see `test_proxy`).
"""

import gc
from collections.abc import Iterator
from time import monotonic

import pytest
from confluent_kafka import Consumer

from chaos.rule import Act, Of, Rule
from chaos.running import Ground
from chaos.wire import Api
from localkafka.broker import wait_until
from tests.support.breadth import slow
from tests.support.clients import COUNTABLE, await_clients, clients_in_use
from worker.bus import Aborted, BusError, OutcomeUnknown, Outgoing, TopicPartition
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.producer import GroupOffsets, TransactionalProducer

pytestmark = pytest.mark.kafka

LONGER_THAN_A_REQUEST = 6.0


@pytest.fixture
def seat(one_node: Ground, app_id: str) -> Iterator[tuple[KafkaOptions, Consumer, str, str]]:
    """Yield options behind the proxy, a member of a group, its topic, and another one."""
    cluster, _ = one_node
    source, sink = cluster.create_topic(f"{app_id}.in"), cluster.create_topic(f"{app_id}.out")
    options = KafkaOptions(cluster.proxied_bootstrap)
    consumer = Consumer({**options.member_config(app_id, "alpha"), "log_level": 0})

    def assigned() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    try:
        consumer.subscribe([source])
        wait_until(assigned, 30, "an assignment")
        yield options, consumer, source, sink
    finally:
        consumer.close()


def _own(consumer: Consumer, topic: str, offset: int) -> GroupOffsets:
    return GroupOffsets(consumer, {TopicPartition(topic, 0): offset}, {})


@pytest.mark.parametrize(
    ("api", "act", "of"),
    [
        pytest.param(Api.END_TXN, "late", "request", marks=pytest.mark.slow(ci=False)),
        pytest.param(Api.END_TXN, "cut", "request", marks=pytest.mark.slow(ci=False)),
        pytest.param(Api.END_TXN, "cut", "response", marks=pytest.mark.slow(ci=False)),
        slow(Api.END_TXN, "drop", "response"),
        pytest.param(Api.TXN_OFFSET_COMMIT, "late", "request", marks=pytest.mark.slow(ci=False)),
        pytest.param(Api.TXN_OFFSET_COMMIT, "drop", "response", marks=pytest.mark.slow(ci=False)),
    ],
    ids=lambda value: value.name if isinstance(value, Api) else value,
)
def test_a_request_that_was_sent_again_leaves_a_doubt(
    one_node: Ground,
    seat: tuple[KafkaOptions, Consumer, str, str],
    api: Api,
    act: Act,
    of: Of,
) -> None:
    _, proxies = one_node
    options, consumer, source, sink = seat
    producer = TransactionalProducer(options, f"{sink}.alpha", source)
    producer.renew()

    def commit(offset: int) -> None:
        records = [Outgoing(sink, 0, None, str(offset).encode())]
        producer.commit(records, _own(consumer, source, offset))

    commit(1)
    rule = Rule(frozenset({api}), act, of, seconds=LONGER_THAN_A_REQUEST, limit=1)
    with proxies.rule(rule):
        began = monotonic()
        with pytest.raises(OutcomeUnknown):
            commit(2)
        assert rule.hits == 1
        assert monotonic() - began < 30
    producer.renew()
    commit(3)
    producer.close()


@pytest.mark.slow
@pytest.mark.skipif(not COUNTABLE, reason="threads are counted in /proc")
def test_a_producer_whose_transaction_failed_is_gone_with_its_threads(
    seat: tuple[KafkaOptions, Consumer, str, str],
) -> None:
    options, consumer, source, sink = seat
    producer = TransactionalProducer(options, f"{sink}.alpha", source)
    namesake = TransactionalProducer(options, f"{sink}.alpha", source)

    def failed(partition: int) -> bool:
        try:
            records = [Outgoing(sink, partition, None, b"")]
            producer.commit(records, _own(consumer, source, 1))
        except (Aborted, BusError, OutcomeUnknown):
            return True
        return False

    producer.renew()
    before = clients_in_use()
    gc.disable()  # It comes by seldom, and threads and connections would pile up.
    try:
        for _ in range(3):
            assert failed(partition=99)
            producer.renew()
            namesake.renew()
            namesake.close()
            assert failed(partition=0)
            producer.renew()
        await_clients(before)
    finally:
        gc.enable()
        producer.close()
