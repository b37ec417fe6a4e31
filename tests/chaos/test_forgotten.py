"""librdkafka forgets its brokers if metadata lists none. Then another client goes on.

librdkafka most often begins again with the bootstrap servers, by itself. All tests but one turn
that off, so it never does.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from time import monotonic

import pytest

from chaos.rule import Rule
from chaos.running import Ground
from chaos.wire import Api, Header
from localkafka.broker import Kafka, wait_until
from worker.bus import Member, Outgoing, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.client_reports import FORGOTTEN, Queues
from worker.bus.kafka.config import KafkaOptions, Value
from worker.bus.kafka.producer import TransactionalProducer

pytestmark = [pytest.mark.kafka, pytest.mark.slow(ci=False)]

RESIGNED: Mapping[str, Value] = {
    "metadata.recovery.strategy": "none",
    "topic.metadata.refresh.interval.ms": 200,
}
METADATA = frozenset({Api.METADATA})
SECONDS = 40.0
SILENT_SECONDS = 1.0
"""In that time, a client that knows brokers asks for metadata five times."""


def forget_brokers(ground: Ground, client: str, poll: Callable[[], object]) -> None:
    """Have one answer with metadata list no brokers; poll until the client asks for no more."""
    asked: list[float] = []

    def note(_: Header) -> None:
        asked.append(monotonic())

    def silent() -> bool:
        poll()
        return alone.hits == 1 and monotonic() - asked[-1] > SILENT_SECONDS

    alone = Rule(METADATA, "alone", "response", client=client, limit=1, on_hit=note)
    others = Rule(METADATA, "delay", "request", client=client, on_hit=note)
    with ground[1].rule(alone), ground[1].rule(others):
        wait_until(silent, SECONDS, "a client without brokers")


def replacements(caplog: pytest.LogCaptureFixture, group: str) -> int:
    """Count the clients of a group that were replaced."""
    return [record.getMessage() for record in caplog.records].count(FORGOTTEN % group)


def begin_at(member: Member, place: TopicPartition, offset: int) -> None:
    """Poll until the member has its partition, and start it."""
    wait_until(lambda: bool(member.poll(1, 1, 0.1).assignment), SECONDS, "an assignment")
    member.seek(place, offset)
    member.resume([place])


def write(kafka: Kafka, place: TopicPartition, value: bytes) -> None:
    """Write a record, past the proxy."""
    bus = KafkaBus(KafkaOptions(kafka.bootstrap))
    with closing(bus.log_writer(f"{place.topic}-writer", place.topic)) as writer:
        writer.renew()
        writer.commit([Outgoing(*place, None, value)])


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_joins_with_another_client(
    one_node: Ground, app_id: str, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    cluster, _ = one_node
    place = TopicPartition(cluster.create_topic(app_id), 0)
    options = KafkaOptions(
        cluster.proxied_bootstrap,
        protocol="consumer" if protocol == "consumer" else "classic",
        consumer={**RESIGNED, "statistics.interval.ms": 1_000},
    )
    with closing(KafkaBus(options).join(app_id, [place.topic], "alpha")) as member:
        begin_at(member, place, 0)
        forget_brokers(one_node, app_id, lambda: member.poll(1, 1, 0.05))
        begin_at(member, place, 0)
        assert replacements(caplog, app_id) == 1
        write(cluster, place, b"after")
        wait_until(lambda: bool(member.poll(1, 1, 0.1).batches), SECONDS, "a record")


def test_members_that_join_while_brokers_list_none_get_their_partitions(
    one_node: Ground, app_id: str
) -> None:
    """By itself, librdkafka leaves about one in five of them waiting: a minute, or for good."""
    cluster, proxies = one_node
    topic = cluster.create_topic(app_id)
    bus = KafkaBus(KafkaOptions(cluster.proxied_bootstrap, renewal_timeout_seconds=9))
    groups = [f"{app_id}-{number:02}" for number in range(24)]
    waiting: dict[str, Member] = {}

    def all_assigned() -> bool:
        for group, member in list(waiting.items()):
            if member.poll(1, 1, 0.01).assignment:
                del waiting[group]
        return not waiting

    with ExitStack() as stack:
        for number, group in enumerate(groups):
            rule = Rule(METADATA, "alone", "response", client=group, limit=1 + number % 4)
            stack.enter_context(proxies.rule(rule))
            waiting[group] = stack.enter_context(closing(bus.join(group, [topic], "alpha")))
        wait_until(all_assigned, SECONDS, "assignments")


def test_a_look_up_of_a_member_is_asked_again_by_another_client(
    one_node: Ground, app_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It does not poll meanwhile, so no statistics tell."""
    caplog.set_level(logging.WARNING)
    cluster, _ = one_node
    place = TopicPartition(cluster.create_topic(app_id), 0)
    options = KafkaOptions(cluster.proxied_bootstrap, consumer=RESIGNED, request_timeout_seconds=10)
    with closing(KafkaBus(options).join(app_id, [place.topic], "alpha")) as member:
        begin_at(member, place, 0)
        forget_brokers(one_node, app_id, lambda: member.poll(1, 1, 0.05))
        assert member.watermarks(place) == (0, 0)
        assert replacements(caplog, app_id) == 1
        assert not member.seated
        begin_at(member, place, 0)


def test_a_member_whose_assignment_is_overdue_joins_with_another_client(
    one_node: Ground, app_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    cluster, proxies = one_node
    topic = cluster.create_topic(app_id)
    options = KafkaOptions(cluster.proxied_bootstrap, max_poll_interval_ms=10_000)
    rule = Rule(frozenset({Api.JOIN_GROUP}), "drop", "request", client=app_id, limit=2)
    with (
        proxies.rule(rule),
        closing(KafkaBus(options).join(app_id, [topic], "alpha")) as member,
    ):
        begin_at(member, TopicPartition(topic, 0), 0)
        assert rule.hits == 2
        said = [record.getMessage() for record in caplog.records]
        assert said.count(f"group {app_id}: no assignment came; joining with another client") == 1


def test_a_reader_goes_on_with_another_client(
    one_node: Ground, app_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    cluster, _ = one_node
    place = TopicPartition(cluster.create_topic(app_id), 0)
    consumer = {**RESIGNED, "statistics.interval.ms": 1_000}
    options = KafkaOptions(cluster.proxied_bootstrap, consumer=consumer, request_timeout_seconds=10)
    bus = KafkaBus(options, Queues())
    read: list[bytes | None] = []

    def look() -> None:
        read.extend(record.value for record in reader.read(10, 1_000, 0.1))

    def has_read(*values: bytes) -> bool:
        look()
        return read == [*values]

    with closing(bus.log_reader(app_id, [place.topic])) as reader:
        reader.start(place, 0)
        write(cluster, place, b"before")
        wait_until(lambda: has_read(b"before"), SECONDS, "a record")
        forget_brokers(one_node, f"{app_id}-reader", look)
        write(cluster, place, b"after")
        wait_until(lambda: has_read(b"before", b"after"), SECONDS, "another record")
        assert replacements(caplog, app_id) == 1


def test_a_look_up_of_a_reader_is_asked_again_by_another_client(
    one_node: Ground, app_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    cluster, _ = one_node
    place = TopicPartition(cluster.create_topic(app_id), 0)
    options = KafkaOptions(cluster.proxied_bootstrap, consumer=RESIGNED, request_timeout_seconds=10)
    with closing(KafkaBus(options).log_reader(app_id, [place.topic])) as reader:
        reader.start(place, 0)
        write(cluster, place, b"before")
        wait_until(lambda: bool(reader.read(1, 1, 0.1)), SECONDS, "a record")
        forget_brokers(one_node, f"{app_id}-reader", lambda: reader.read(1, 1, 0.05))
        assert reader.watermarks(place)[0] == 0
        assert replacements(caplog, app_id) == 1


def test_a_producer_that_loses_its_brokers_as_it_begins_is_replaced(
    one_node: Ground, app_id: str
) -> None:
    """It waits for its coordinator when that happens."""
    cluster, proxies = one_node
    topic = cluster.create_topic(app_id)
    options = KafkaOptions(cluster.proxied_bootstrap, producer=RESIGNED, renewal_timeout_seconds=15)
    producer = TransactionalProducer(options, app_id, topic)
    coordinators = frozenset({Api.FIND_COORDINATOR})
    with ThreadPoolExecutor(1) as pool:
        with proxies.rule(Rule(coordinators, "drop", "response", client=app_id)) as rule:
            renewed = pool.submit(producer.renew)
            wait_until(lambda: rule.hits == 1 or renewed.done(), SECONDS, "a request")
            forget_brokers(one_node, app_id, renewed.done)
        assert not renewed.done()
        renewed.result(SECONDS)
    producer.commit([Outgoing(topic, 0, None, b"")])
    producer.close()


def test_the_ends_of_logs_are_asked_for_by_the_admin_client_that_replaces_another(
    one_node: Ground, app_id: str
) -> None:
    cluster, proxies = one_node
    place = TopicPartition(cluster.create_topic(app_id), 0)
    bus = KafkaBus(KafkaOptions(cluster.proxied_bootstrap, common=RESIGNED))
    with closing(bus.log_reader(app_id, [place.topic])) as reader:
        wait_until(lambda: reader.end(place) == 0, SECONDS, "the end of an empty log")
        with proxies.rule(Rule(METADATA, "alone", "response", client="neardup-admin")):
            assert bus.partitions([place.topic]) == {place.topic: 1}
        wait_until(lambda: bus.silent_seconds > SILENT_SECONDS, SECONDS, "silence")
        write(cluster, place, b"after")
        wait_until(lambda: (reader.end(place) or 0) > 0, SECONDS, "another end")
