"""The proxy's own tests: that it does to requests what rules say, and nothing else."""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from chaos.rule import Rule
from chaos.running import Ground
from chaos.wire import Api
from localkafka.broker import Kafka, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow(ci=False)]

END_TXN = frozenset({Api.END_TXN})


def begun(bootstrap: str, name: str, topic: str) -> Producer:
    """Give a producer in the middle of a transaction, with a record in it."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": name,
            "client.id": name,
            "transaction.timeout.ms": 30_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, name.encode())
    assert producer.flush(30) == 0
    return producer


def visible(kafka: Kafka, topic: str) -> list[bytes | None]:
    """Read what is committed, past the proxy."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": f"{topic}-visible",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[bytes | None] = []
        while True:
            message = consumer.poll(30)
            assert message is not None, "no end of the partition"
            if message.error() is not None:
                return values
            values.append(message.value())
    finally:
        consumer.close()


def becomes_visible(kafka: Kafka, topic: str, *values: str) -> None:
    """Wait for the commit's markers: brokers write them after they have answered EndTxn."""
    expected = [value.encode() for value in values]
    wait_until(lambda: visible(kafka, topic) == expected, 30, f"{expected} to be all that is seen")


def test_clients_that_begin_behind_the_proxy_stay_there(one_node: Ground, app_id: str) -> None:
    cluster, _ = one_node
    behind = Kafka(cluster.proxied_bootstrap).admin().list_topics(timeout=30).brokers
    past = cluster.admin().list_topics(timeout=30).brokers
    assert {broker.port for broker in behind.values()} == {cluster.proxied[1][0]}
    assert {f"{b.host}:{b.port}" for b in past.values()} == {cluster.bootstrap}
    topic = cluster.create_topic(app_id)
    begun(cluster.proxied_bootstrap, app_id, topic).commit_transaction(30)
    becomes_visible(cluster, topic, app_id)


def test_of_a_dropped_answer_the_request_was_executed(one_node: Ground, app_id: str) -> None:
    cluster, proxies = one_node
    topic = cluster.create_topic(app_id)
    producer = begun(cluster.proxied_bootstrap, app_id, topic)
    with proxies.rule(Rule(END_TXN, "drop", "response", client=app_id)) as rule:
        with pytest.raises(KafkaException):
            producer.commit_transaction(2)
        assert rule.hits == 1
        becomes_visible(cluster, topic, app_id)


def test_a_dropped_request_was_not_executed(one_node: Ground, app_id: str) -> None:
    cluster, proxies = one_node
    topic = cluster.create_topic(app_id)
    producer = begun(cluster.proxied_bootstrap, app_id, topic)
    with proxies.rule(Rule(END_TXN, "drop", "request", client=app_id)) as rule:
        with pytest.raises(KafkaException):
            producer.commit_transaction(2)
        assert rule.hits == 1
    assert visible(cluster, topic) == []
    begun(cluster.proxied_bootstrap, app_id, topic).commit_transaction(30)
    becomes_visible(cluster, topic, app_id)


def test_a_delayed_request_is_executed_though_its_sender_is_gone(
    one_node: Ground, app_id: str
) -> None:
    cluster, proxies = one_node
    topic = cluster.create_topic(app_id)
    producer = begun(cluster.proxied_bootstrap, app_id, topic)
    with proxies.rule(Rule(END_TXN, "delay", "request", seconds=3, client=app_id)):
        with pytest.raises(KafkaException):
            producer.commit_transaction(0.5)
        del producer
        assert visible(cluster, topic) == []
    becomes_visible(cluster, topic, app_id)


def test_a_late_request_is_executed_after_its_senders_connection_was_lost(
    one_node: Ground, app_id: str
) -> None:
    """What follows from it: librdkafka asks again, and goes on to its next transaction.

    The late request then ends that one: here an aborted record becomes visible. So a
    producer must not go on after such a loss; that it does not notice by itself is why
    workers throw theirs away.
    """
    cluster, proxies = one_node
    topic = cluster.create_topic(app_id)
    producer = begun(cluster.proxied_bootstrap, app_id, topic)
    with proxies.rule(Rule(END_TXN, "late", "request", seconds=2, client=app_id, limit=1)) as rule:
        producer.commit_transaction(30)
        assert rule.hits == 1
    producer.begin_transaction()
    producer.produce(topic, b"aborted")
    assert producer.flush(30) == 0
    becomes_visible(cluster, topic, app_id)
    wait_until(lambda: b"aborted" in visible(cluster, topic), 30, "the late EndTxn to do harm")


def test_a_cut_connection_is_made_again(one_node: Ground, app_id: str) -> None:
    cluster, proxies = one_node
    topic = cluster.create_topic(app_id)
    for of in ("request", "response"):
        rule = Rule(frozenset({Api.PRODUCE}), "cut", of, client=app_id, limit=1)
        with proxies.rule(rule):
            producer = begun(cluster.proxied_bootstrap, f"{app_id}-{of}", topic)
            producer.commit_transaction(30)
        assert rule.hits == 1
    becomes_visible(cluster, topic, f"{app_id}-request", f"{app_id}-response")


def test_a_broker_that_is_down_is_down_behind_its_proxy(one_node: Ground, app_id: str) -> None:
    cluster, _ = one_node
    cluster.kill(1)
    with pytest.raises(KafkaException):
        Kafka(cluster.proxied_bootstrap).admin().list_topics(timeout=1)
    cluster.start(1)
    topic = cluster.create_topic(app_id)
    begun(cluster.proxied_bootstrap, app_id, topic).commit_transaction(30)
    becomes_visible(cluster, topic, app_id)
