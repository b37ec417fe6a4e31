"""Ids of topics: beside every offset, and looked at from time to time."""

import json
import logging
from collections.abc import Collection
from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place

from localkafka.broker import Kafka, wait_until
from tests.support.kafka_harness import KafkaHarness
from worker.admin.cluster import Cluster
from worker.bus import BusError, Offset, Outgoing, Record, TopicPartition, TopicRecreated
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.identities import Identities, id_in, metadata_of
from worker.bus.kafka.log_ends import Ends
from worker.bus.kafka.log_watcher import Watched, Watcher
from worker.bus.kafka.reader import KafkaReader


def test_every_committed_offset_carries_the_id(kafka: Kafka, app_id: str) -> None:
    """As `neardup init` sets it, and as a member commits it."""
    options = KafkaOptions(kafka.bootstrap)
    harness = KafkaHarness(kafka.bootstrap, KafkaBus(options), app_id)
    topic, group = harness.topic(), harness.name("group")
    place = TopicPartition(topic, 0)
    expected = {"topic_id": harness.bus.identity(topic)}
    Cluster(options).commit(group, {place: 0})
    assert _committed(kafka, group, place) == (0, expected)
    harness.append(Outgoing(topic, 0, None, b"a"))
    seat = harness.alone(topic, group=group)
    seat.rewind()
    seat.collect(1)
    seat.member.commit([], {place: 1})
    offset, facts = _committed(kafka, group, place)
    assert (offset, facts["topic_id"]) == (1, expected["topic_id"])
    harness.close()


def test_an_offset_of_another_topic_carries_that_topics_id(kafka: Kafka, app_id: str) -> None:
    harness = KafkaHarness(kafka.bootstrap, KafkaBus(KafkaOptions(kafka.bootstrap)), app_id)
    owned, log, group = harness.topic(), harness.topic(), harness.name("group")
    place = TopicPartition(owned, 0)
    seat = harness.join(group, [owned], "alone", of=log)
    harness.settle([seat], owned)
    seat.member.commit([], {place: 1_000})
    offset, facts = _committed(kafka, group, place)
    assert (offset, facts["topic_id"]) == (1_000, harness.bus.identity(log))
    harness.close()


@pytest.mark.parametrize("read", [1, 20])
def test_a_reader_hears_of_a_later_topic_from_its_own_client(
    kafka: Kafka, app_id: str, read: int
) -> None:
    """Before that client hands out anything of it; the watcher never looks."""
    options = KafkaOptions(kafka.bootstrap)
    harness = KafkaHarness(kafka.bootstrap, KafkaBus(options), app_id)
    topic = harness.topic()
    watcher = Watcher(lambda _topics, _seconds: {}, lambda _ends, _seconds: None, every_seconds=600)
    identities = Identities(
        [topic], lambda asked: {name: harness.bus.identity(name) for name in asked}
    )
    records: list[Record] = []

    def has(count: int) -> bool:
        records.extend(reader.read(100, 1 << 20, 0.05))
        return len(records) == count

    with closing(
        KafkaReader(options, harness.name("group"), Watched(identities, Ends()), watcher)
    ) as reader:
        reader.start(TopicPartition(topic, 0), 0)
        harness.append(*(Outgoing(topic, 0, None, b"old") for _ in range(read)))
        wait_until(lambda: has(read), 30, "the old topic")
        harness.recreate(topic)
        harness.append(*(Outgoing(topic, 0, None, b"new") for _ in range(50)))
        with pytest.raises(TopicRecreated):
            wait_until(lambda: has(-1), 60, "the reader to say so")
    assert {record.value for record in records} == {b"old"}
    harness.close()


def test_a_topic_that_does_not_exist_has_no_id(kafka: Kafka, app_id: str) -> None:
    with pytest.raises(BusError, match="does not exist"):
        KafkaBus(KafkaOptions(kafka.bootstrap)).identity(app_id)


def _committed(kafka: Kafka, group: str, place: TopicPartition) -> tuple[int, dict[str, str]]:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group, "log_level": 0})
    try:
        (found,) = consumer.committed([Place(*place)], 30)
    finally:
        consumer.close()
    return found.offset, json.loads(found.metadata or "")


@pytest.mark.parametrize("metadata", [None, "", "by hand", "{", "[]", '"x"', '{"topic_id": 7}'])
def test_foreign_metadata_names_no_topic(metadata: str | None) -> None:
    assert id_in(metadata) is None


def test_metadata_is_compact_and_keys_may_be_added() -> None:
    assert metadata_of("abc", 5) == '{"topic_id":"abc"}'
    assert metadata_of("abc", Offset(5, "on")) == '{"topic_id":"abc","state":"on"}'
    assert id_in('{"more": [1], "topic_id": "abc"}') == "abc"


class Topics:
    """Topics with ids, as a cluster would give them."""

    def __init__(self, **ids: str) -> None:
        self.ids = ids
        self.down = False

    def present(self, topics: Collection[str], seconds: float = 1.0) -> dict[str, str]:
        assert seconds > 0
        if self.down:
            raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))
        return {topic: self.ids[topic] for topic in topics if topic in self.ids}


def test_the_watcher_tells_each_member_of_its_own_topics(caplog: pytest.LogCaptureFixture) -> None:
    """A cluster that doesn't answer, or a topic that is missing for a moment, is no reason."""
    caplog.set_level(logging.INFO)
    topics, now = Topics(a="1", b="1"), [0.0]
    watcher = Watcher(
        topics.present, lambda _ends, _seconds: None, every_seconds=3_600, clock=lambda: now[0]
    )
    first, second = Identities(["a", "b"], topics.present), Identities(["b"], topics.present)
    watched = [Watched(member, Ends()) for member in (first, second)]
    for member in watched:
        watcher.watch(member)
        member.identities.ask(member.identities.topics)
    topics.down = True
    watcher.look()
    watcher.look()
    topics.down = False
    del topics.ids["a"]
    watcher.look()
    now[0] = 29
    watcher.look()
    first.check()
    assert [record.message for record in caplog.records if "brokers don't" in record.message] == [
        "the brokers don't describe the topics: Local: All broker connections are down; retrying"
    ]
    assert "a has not existed" not in caplog.text
    for now[0] in (31, 33):
        watcher.look()
    assert caplog.text.count("a has not existed for 31 s") == 1
    topics.ids["a"] = "2"
    watcher.look()
    second.check()
    with pytest.raises(TopicRecreated) as raised:
        first.check()
    assert (raised.value.topic, raised.value.was, raised.value.now) == ("a", "1", "2")
    for member in watched:
        watcher.leave(member)


def test_the_clients_own_log_tells_first() -> None:
    topics = Topics(a="1")
    member = Identities(["a"], topics.present)
    member.hear("[thrd:main]: Topic a changed id from AAAAAAAAAAAAAAAAAAAAAA to 0")
    member.ask(["a"])
    member.hear("[thrd:main]: Topic a changed id from 0 to 1")
    member.hear("[thrd:main]: Topic a changed id from 1 to AAAAAAAAAAAAAAAAAAAAAA")
    member.hear("[thrd:main]: Topic other changed id from 1 to 2")
    member.check()
    member.hear("[thrd:main]: Topic a changed id from AAAAAAAAAAAAAAAAAAAAAA to 2")
    with pytest.raises(TopicRecreated):
        member.check()
