"""`neardup redrive` on a real broker: each rejected document once, whatever comes between."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin._config import (  # Typed there; the admin module only passes them on.
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)
from confluent_kafka.admin._resource import ResourceType

from localkafka.broker import Kafka, wait_until
from tests.support.clusters import ClusterFactory
from tests.support.raw_producer import produce_raw
from tests.support.redriving import REASON, Redriving, numbered
from worker.admin.checks import inspect
from worker.admin.cluster import Cluster
from worker.bus import Fenced, Outgoing, TopicPartition
from worker.cli.redrive import bus

MANY = 40_000
"""So many take a run some seconds."""

Make = Callable[[Kafka], Redriving]


@pytest.fixture
def make(app_id: str) -> Iterator[Make]:
    made: list[Redriving] = []

    def redriving(kafka: Kafka) -> Redriving:
        made.append(Redriving(kafka, app_id))
        return made[-1]

    yield redriving
    for one in made:
        one.close()


@pytest.fixture
def app(kafka: Kafka, make: Make) -> Redriving:
    return make(kafka)


def once(values: list[bytes]) -> Counter[bytes]:
    return Counter(dict.fromkeys(values, 1))


@pytest.mark.slow(ci=False)
def test_progress_outlives_the_offsets_of_a_group(
    kafka_cluster: ClusterFactory, make: Make
) -> None:
    app = make(
        kafka_cluster(
            1, {"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 1_000}
        )
    )
    values = numbered(10)
    app.reject(values)
    assert app.run("--reason other").startswith("0 sent again; 10 left")
    assert app.run().startswith("10 sent again")
    canary = f"{app.app}.canary"
    place = TopicPartition(app.topic("rejected"), 0)
    cluster = Cluster(app.settings.kafka_options())
    cluster.commit(canary, {place: 1})
    assert cluster.committed({canary: [place]})[canary]

    def expired() -> bool:
        return not cluster.committed({canary: [place]})[canary]

    wait_until(expired, 120, "the offsets of a group to expire")
    assert app.run() == "0 sent again\n"
    assert app.sent() == once(values)


@pytest.mark.slow(ci=False)
def test_a_document_that_only_compression_makes_small_goes_through(app: Redriving) -> None:
    values = [b"a" * 3_000_000, b"b" * 5_000_000, b"c"]
    app.reject(values, compression="zstd")
    assert app.run().startswith("3 sent again")
    assert app.sent() == once(values)


@pytest.mark.slow(ci=False)
def test_a_document_that_the_topic_refuses_is_named_and_left(app: Redriving) -> None:
    small, large = numbered(40), os.urandom(2_000_000)
    app.reject([*small[:20], large, *small[20:]])
    app.reject([os.urandom(1_500_000)], "too-large")
    said = app.run(status=1)
    assert said.startswith("40 sent again (no-text 40)\n")
    documents = app.topic("documents")
    assert f"neardup: 2 refused by {documents}, and left on {app.topic('rejected')};" in said
    assert f"  {documents}[1]@20: 2,000,1" in said
    assert ", rejected as no-text, refused as MSG_SIZE_TOO_LARGE" in said
    assert ", rejected as too-large, refused as MSG_SIZE_TOO_LARGE" in said
    assert app.sent() == once(small)

    again = app.run("--reason too-large", status=1)
    assert again.startswith("0 sent again\n")
    assert "1 refused by" in again

    change = ConfigEntry(
        "max.message.bytes", "4000000", incremental_operation=AlterConfigOpType.SET
    )
    admin = app.kafka.admin()
    resource = ConfigResource(ResourceType.TOPIC, documents, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(30)
    assert app.run("--reason no-text").startswith("1 sent again (no-text 1)")
    assert app.run("--limit 5").startswith("1 sent again (too-large 1)")
    assert app.run() == "0 sent again\n"
    assert app.sent()[large] == 1
    assert app.sent().total() == 42


@pytest.mark.slow(ci=False)
def test_documents_that_killed_workers_only_go_by_name(app: Redriving) -> None:
    values = numbered(2)
    app.reject(values, "poison")
    assert app.run() == (
        "0 sent again; 2 left (poison 2); 2 poison documents only go with --reason poison\n"
    )
    assert not app.sent()
    assert app.run("--reason poison").startswith("2 sent again (poison 2)")
    assert app.sent() == once(values)


@pytest.mark.slow(ci=False)
def test_refused_documents_do_not_use_up_the_limit(app: Redriving) -> None:
    small = numbered(4)
    app.reject([os.urandom(2_000_000), os.urandom(2_000_000), *small])
    assert app.run("--limit 2", status=1).startswith("2 sent again")
    assert app.run("--limit 9", status=1).startswith("2 sent again")
    assert app.sent() == once(small)


@pytest.mark.slow(ci=False)
def test_headers_that_anybody_may_have_written_stop_nothing(app: Redriving) -> None:
    values = numbered(6)
    wrong = [b"9" * 5_000, b"no number", b"\xff", b"-1", b"", b"7" * 19]
    for value, number in zip(values, wrong, strict=True):
        for name in ("neardup-redriven", "neardup-error-partition"):
            app.reject([value + name.encode()], headers=[(name, number)])
    assert app.run() == "6 sent again (no-text 6); 6 not written by neardup, and left\n"
    records = app.read("documents")
    assert {list(r.headers() or ())[-1] for r in records} == {("neardup-redriven", b"1")}
    assert app.sent() == once([value + b"neardup-redriven" for value in values])


@pytest.mark.slow(ci=False)
def test_headers_that_cannot_be_read_leave_the_document_where_it_is(app: Redriving) -> None:
    values = numbered(2)
    app.reject(values[:1])
    produce_raw(app.kafka.bootstrap, app.topic("rejected"), 0, b"odd", [(b"\xff", b"")])
    app.reject(values[1:])
    said = app.run(status=1)
    assert said.startswith("2 sent again")
    assert "refused as UNREADABLE_HEADERS" in said
    assert app.sent() == once(values)


@pytest.mark.slow(ci=False)
def test_a_rejected_topic_that_was_made_anew_starts_over(app: Redriving) -> None:
    first, second = numbered(10), numbered(4)
    app.reject(first)
    assert app.run().startswith("10 sent again")
    topic = app.topic("rejected")
    admin = app.kafka.admin()  # Held until the result is there: the client dies with its name.
    admin.delete_topics([topic])[topic].result(30)
    wait_until(lambda: topic not in admin.list_topics(timeout=10).topics, 30, "no topic")
    app.kafka.create_topic(topic, 2)
    app.reject(second)
    said = app.run()
    assert said.startswith(f"{topic} was recreated since the last run")
    assert "4 sent again" in said
    assert app.run() == "0 sent again\n"
    assert app.sent() == once([*first, *second])


@pytest.mark.slow(ci=False)
def test_the_topic_is_made_where_it_is_missing(app: Redriving) -> None:
    cluster, name = Cluster(app.settings.kafka_options()), f"{app.app}.redrive"
    [missing] = [p for p in inspect(cluster, app.settings).problems if p.subject == name]
    assert (missing.severity, missing.has) == ("warning", "missing")
    app.run()
    _, states = cluster.topics([name])
    state = states[name]
    assert state is not None
    assert (state.partitions, state.settings["cleanup.policy"]) == (1, "compact")
    assert not [p for p in inspect(cluster, app.settings).problems if p.subject == name]


@pytest.mark.slow(ci=False)
def test_a_topic_that_forgets_is_refused(app: Redriving) -> None:
    app.kafka.create_topic(f"{app.app}.redrive", 1, {"cleanup.policy": "delete"})
    app.reject(numbered(2))
    assert "cleanup.policy is delete, must be compact" in app.run(status=2)
    assert not app.sent()


@pytest.mark.slow(ci=False)
def test_a_line_of_somebody_else_stops_before_anything_is_sent(app: Redriving) -> None:
    app.run()
    producer = Producer({"bootstrap.servers": app.kafka.bootstrap})
    producer.produce(f"{app.app}.redrive", b"hello", "key", partition=0)
    producer.flush(30)
    app.reject(numbered(2))
    said = app.run(status=1)
    assert f"{app.app}.redrive: the record at offset " in said
    assert "can't be understood: its key is b'key'" in said
    assert not app.sent()
    producer.produce(f"{app.app}.redrive", None, "key", partition=0)
    producer.flush(30)
    assert app.run().startswith("2 sent again")


@pytest.mark.slow(ci=False)
def test_records_deleted_before_they_were_sent_are_told(app: Redriving) -> None:
    app.reject(numbered(10))
    app.run("--limit 2")
    app.reject([os.urandom(2_000_000)])
    place = Place(app.topic("rejected"), 0, 4)
    admin = app.kafka.admin()  # Held until the result is there: the client dies with its name.
    admin.delete_records([place])[place].result(30)
    said = app.run(status=1)
    assert f"{app.topic('rejected')}[0] lost offsets " in said
    assert "lost" not in app.run(status=1)


@pytest.mark.slow(ci=False)
def test_a_killed_run_is_gone_on_with(app: Redriving) -> None:
    values = numbered(MANY)
    app.reject(values)
    for sent in (1_000, 10_000):
        run = app.start()
        wait_until(partial(app.has_sent, sent), 60, "documents to be sent")
        run.kill()
        assert run.wait(30) == -signal.SIGKILL
    assert "sent again" in app.run()
    assert app.run() == "0 sent again\n"
    assert app.sent() == once(values)


@pytest.mark.slow(ci=False)
def test_a_frozen_run_that_wakes_up_sends_nothing(app: Redriving) -> None:
    values = numbered(MANY)
    app.reject(values)
    zombie = app.start()
    wait_until(lambda: app.has_sent(1_000), 60, "documents to be sent")
    zombie.send_signal(signal.SIGSTOP)
    assert "sent again" in app.run()
    zombie.send_signal(signal.SIGCONT)
    said = zombie.communicate(timeout=120)[1]
    assert zombie.returncode == 1
    # It depends on where it was frozen whether it learns why: see the next test.
    assert "another r" in said
    assert app.run() == "0 sent again\n"
    assert app.sent() == once(values)


@pytest.mark.slow(ci=False)
def test_who_began_before_another_can_write_nothing(app: Redriving) -> None:
    app.run()
    options, documents = app.settings.kafka_options(), app.topic("documents")
    name = app.topic("redrive")
    older, newer = (bus(options, 1_000_000).log_writer(name, name) for _ in range(2))
    older.renew()
    older.commit([Outgoing(documents, 0, None, b"before")])
    newer.renew()
    for value in (b"first", b"second"):
        with pytest.raises(Fenced, match="Another writer under this name took over"):
            older.commit([Outgoing(documents, 0, None, value), Outgoing(name, 0, b"key", b"line")])
    newer.commit([Outgoing(documents, 0, None, b"after"), Outgoing(name, 0, b"key", None)])
    older.close()
    newer.close()
    assert app.sent() == once([b"before", b"after"])


@pytest.mark.slow
def test_of_two_at_once_one_ends(app: Redriving) -> None:
    values = numbered(MANY)
    app.reject(values)
    first = app.start()
    wait_until(lambda: app.has_sent(1), 60, "documents to be sent")
    first.send_signal(signal.SIGSTOP)  # Or it might be done before the second one has begun.
    second = app.start(f"--reason {REASON}")
    wait_until(partial(app.has_sent, MANY // 2), 60, "the second one to send")
    first.send_signal(signal.SIGCONT)
    said = first.communicate(timeout=60)[1]
    assert "another r" in said  # See above.
    assert first.returncode == 1
    second.communicate(timeout=120)
    assert second.returncode == 0
    assert app.run().startswith("0 sent again")
    assert app.sent() == once(values)


@pytest.mark.slow(ci=False)
def test_a_broker_that_dies_loses_and_doubles_nothing(
    kafka_cluster: ClusterFactory, make: Make
) -> None:
    cluster = kafka_cluster(3)
    app = make(cluster)
    values = numbered(MANY)
    app.reject(values)
    run = app.start()
    wait_until(partial(app.has_sent, 1_000), 60, "documents to be sent")
    cluster.kill(1)
    said = run.communicate(timeout=120)[1]
    assert run.returncode == (0 if f"{MANY:,} sent again" in said else 1), said
    ended = [said]

    def done() -> bool:
        again = app.start()
        ended.append(again.communicate(timeout=120)[1])
        return again.returncode == 0

    wait_until(done, 120, "a run that ends well")
    assert app.run() == "0 sent again\n"
    assert app.sent() == once(values), ended
