"""The fixture's own tests: that what other tests rely on is really there."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from localkafka import jars as jars_module
from localkafka.broker import BrokerStartError, Kafka, KafkaCluster, wait_until
from localkafka.jars import KafkaUnavailable
from localkafka.ports import PORTS, PROCESSES, own_ports

ClusterFactory = Callable[..., KafkaCluster]


def transactional(kafka: Kafka, name: str) -> Producer:
    """Return a producer that is ready to begin transactions."""
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "transactional.id": name,
            # librdkafka gives up on a record at this age, and a lost node costs seconds.
            "transaction.timeout.ms": 60_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(60)
    return producer


@contextmanager
def reader(kafka: Kafka, topic: str, isolation: str = "read_committed") -> Iterator[Consumer]:
    """Yield a consumer at the start of `topic`'s partition 0, outside any group."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": f"{topic}-{isolation}",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        yield consumer
    finally:
        consumer.close()


def values_to_end(consumer: Consumer) -> list[bytes | None]:
    """Read until the consumer says that it stands at the partition's (stable) end."""
    values: list[bytes | None] = []
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        message: Message | None = consumer.poll(1)
        if message is None:
            continue
        if message.error() is not None:
            return values
        values.append(message.value())
    raise TimeoutError(f"no end of partition within 60 s, after {len(values)} records")


def test_committed_is_visible_and_aborted_is_not(kafka: Kafka, app_id: str) -> None:
    topic = kafka.create_topic(f"{app_id}.out")
    producer = transactional(kafka, app_id)
    for value, finish in (
        (b"kept", producer.commit_transaction),
        (b"dropped", producer.abort_transaction),
        (b"kept too", producer.commit_transaction),
    ):
        producer.begin_transaction()
        producer.produce(topic, value)
        assert producer.flush(30) == 0
        finish(30)

    with reader(kafka, topic) as committed:
        assert values_to_end(committed) == [b"kept", b"kept too"]
    with reader(kafka, topic, "read_uncommitted") as everything:
        assert values_to_end(everything) == [b"kept", b"dropped", b"kept too"]


def test_an_open_transaction_holds_back_what_comes_after_it(kafka: Kafka, app_id: str) -> None:
    topic = kafka.create_topic(f"{app_id}.out")
    slow, fast = transactional(kafka, f"{app_id}-slow"), transactional(kafka, f"{app_id}-fast")
    for producer in (slow, fast):
        producer.begin_transaction()
        producer.produce(topic, b"x")
        assert producer.flush(30) == 0
    fast.commit_transaction(30)

    with reader(kafka, topic) as committed:
        assert values_to_end(committed) == []
    slow.abort_transaction(30)
    with reader(kafka, topic) as committed:
        assert values_to_end(committed) == [b"x"]


def test_a_second_producer_with_the_same_id_fences_the_first(kafka: Kafka, app_id: str) -> None:
    topic = kafka.create_topic(f"{app_id}.out")
    old = transactional(kafka, app_id)
    old.begin_transaction()
    old.produce(topic, b"ghost")
    assert old.flush(30) == 0
    transactional(kafka, app_id)

    with pytest.raises(KafkaException) as fenced:
        old.commit_transaction(30)
    assert fenced.value.args[0].fatal()
    with reader(kafka, topic) as committed:
        assert values_to_end(committed) == []


@pytest.mark.slow(ci=False)
def test_config_of_a_cluster_can_be_overridden(kafka_cluster: ClusterFactory, app_id: str) -> None:
    cluster = kafka_cluster(nodes=1, config={"message.max.bytes": 2_000})
    topic = cluster.create_topic(app_id)
    refused: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        refused.append(error.name() if error else "delivered")

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    producer.produce(topic, os.urandom(4_000), on_delivery=delivered)
    assert producer.flush(30) == 0
    assert refused == ["MSG_SIZE_TOO_LARGE"]


@pytest.mark.slow(ci=False)
def test_a_node_keeps_its_data_over_kill_and_stop(
    kafka_cluster: ClusterFactory, app_id: str
) -> None:
    cluster = kafka_cluster(nodes=1)
    topic = cluster.create_topic(app_id)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for value, end in ((b"1", cluster.kill), (b"2", cluster.stop)):
        producer.produce(topic, value)
        assert producer.flush(30) == 0
        end(1)
        cluster.start(1)
    with reader(cluster, topic) as committed:
        assert values_to_end(committed) == [b"1", b"2"]


@pytest.mark.slow(ci=False)
def test_a_paused_node_answers_again_when_resumed(
    kafka_cluster: ClusterFactory, app_id: str
) -> None:
    cluster = kafka_cluster(nodes=1)
    cluster.pause(1)
    with pytest.raises(KafkaException):
        cluster.admin().list_topics(timeout=1)
    cluster.resume(1)
    assert cluster.create_topic(app_id) == app_id


@pytest.mark.slow(ci=False)
def test_three_nodes_survive_the_loss_of_one(kafka_cluster: ClusterFactory, app_id: str) -> None:
    cluster = kafka_cluster(nodes=3)
    topic = cluster.create_topic(app_id)
    producer = transactional(cluster, app_id)
    cluster.kill(1)
    producer.begin_transaction()
    producer.produce(topic, b"without 1")
    assert producer.flush(60) == 0
    producer.commit_transaction(60)
    cluster.start(1)
    with reader(cluster, topic) as committed:
        assert values_to_end(committed) == [b"without 1"]


@pytest.mark.slow
@pytest.mark.usefixtures("kafka_cluster")
def test_nothing_outlives_a_test_process_that_was_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from localkafka.broker import KafkaCluster\n"
        "with KafkaCluster() as cluster:\n"
        "    print(cluster.bootstrap, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    victim = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with victim:
        assert victim.stdout is not None
        bootstrap = victim.stdout.readline().strip()
        assert Kafka(bootstrap).admin().list_topics(timeout=30).brokers.keys() == {1}
        victim.send_signal(signal.SIGKILL)

    wait_until(lambda: not any(tmp_path.glob("neardup-kafka-*")), 30, "the directory to go")
    with pytest.raises(KafkaException):
        Kafka(bootstrap).admin().list_topics(timeout=1)


@pytest.mark.slow(ci=False)
@pytest.mark.usefixtures("kafka_cluster")
def test_a_node_that_cannot_start_shows_its_log() -> None:
    with (
        pytest.raises(BrokerStartError, match="no-such-policy") as error,
        KafkaCluster(config={"log.cleanup.policy": "no-such-policy"}),
    ):
        pass
    assert "node 1" in str(error.value)


def test_processes_that_run_side_by_side_share_no_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    for number in range(PROCESSES):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{number}")
        taken += own_ports()
    assert sorted(taken) == list(PORTS)


def test_absence_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(KafkaUnavailable, match="no Java found"):
        jars_module.java()
    with pytest.raises(KafkaUnavailable, match="Maven"):
        jars_module.jars()
