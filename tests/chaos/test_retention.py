"""Time that passes for the logs: they are emptied, and what was collected is still there."""

import pytest
from confluent_kafka import Producer, TopicPartition

from chaos.offsets import ends, starts
from chaos.retention import Retention
from chaos.running import Ground
from localkafka.broker import wait_until
from tests.support.application import ApplicationUnderTest
from tests.support.collector import Collector
from worker.bus import TopicPartition as Partition

pytestmark = [pytest.mark.kafka, pytest.mark.slow(ci=False)]

SECONDS = 2.0


def test_every_log_is_emptied_and_takes_more(one_node: Ground, app_id: str) -> None:
    cluster, _ = one_node
    admin = cluster.admin()
    with ApplicationUnderTest(cluster, app_id) as application:
        topology = application.topology
        documents = [("one", "a document"), ("two", "another document")]
        application.feed(application.documents(documents))
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        answers = topology.matches(0)
        producer.produce(answers, b"an answer", partition=1)
        assert producer.flush(30) == 0
        places = [(topology.documents, 0), (topology.documents, 1), (answers, 1)]
        with Retention(admin, application, SECONDS) as retention:
            retention.await_emptied(places)
            assert starts(admin, places) == dict.fromkeys(places, 1)
            producer.produce(answers, b"a young answer", partition=1)
            assert producer.flush(30) == 0
            assert ends(admin, places)[answers, 1] == 2
            retention.await_emptied(places)
            assert starts(admin, places)[answers, 1] == 2


def test_what_is_collected_outlives_its_log(one_node: Ground, app_id: str) -> None:
    cluster, _ = one_node
    admin, topic = cluster.admin(), cluster.create_topic(app_id)
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": app_id, "log_level": 0}
    )
    producer.init_transactions(30)
    with Collector(cluster.bootstrap, Partition(topic, 0)) as collector:
        for number in range(3):
            producer.begin_transaction()
            producer.produce(topic, b"%d" % number, partition=0)
            producer.commit_transaction(30)
            producer.begin_transaction()
            producer.produce(topic, b"aborted", partition=0)
            assert producer.flush(30) == 0
            producer.abort_transaction(30)
            assert len(collector.records()) == number + 1
            deleted = admin.delete_records([TopicPartition(topic, 0, -1)])
            for one in deleted.values():
                one.result(30)
        wait_until(lambda: starts(admin, [(topic, 0)]) == ends(admin, [(topic, 0)]), 30, "trims")
        assert [record.value for record in collector.records()] == [b"0", b"1", b"2"]


def test_what_is_deleted_unread_is_told(one_node: Ground, app_id: str) -> None:
    cluster, _ = one_node
    admin, topic = cluster.admin(), cluster.create_topic(app_id)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for _ in range(3):
        producer.produce(topic, b"x", partition=0)
    assert producer.flush(30) == 0
    for one in admin.delete_records([TopicPartition(topic, 0, 2)]).values():
        one.result(30)
    with (
        Collector(cluster.bootstrap, Partition(topic, 0)) as collector,
        pytest.raises(AssertionError, match="was not read to its end"),
    ):
        collector.records()
