"""A broker with documents and applications, which all benchmarks on Kafka share."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from bench.processes import Program
from localkafka.broker import KafkaCluster
from worker.admin.cluster import Cluster
from worker.admin.create import create
from worker.admin.layout_log import agree
from worker.admin.starts import Start, begin
from worker.settings.loading import load
from worker.settings.model import Settings

PARTITIONS = 4
DOCUMENTS = "bench.documents"
REBALANCE_DELAY_MS = 3_000
"""The broker's default of group.initial.rebalance.delay.ms."""

_LOOK_SECONDS = 0.02
_STEP_SECONDS = 0.005
_LOG_ERRORS = 3
"""librdkafka's ``log_level``; higher levels log that a coordinator is still loading."""


@contextmanager
def broker(
    rebalance_delay_ms: int = REBALANCE_DELAY_MS, *, lasting: bool = False
) -> Iterator[KafkaCluster]:
    """Run one Kafka broker with the documents topic; see `KafkaCluster` for ``lasting``."""
    config = {"group.initial.rebalance.delay.ms": rebalance_delay_ms}
    with KafkaCluster(1, config, heap_mb=1024, lasting=lasting) as kafka:
        kafka.create_topic(DOCUMENTS, PARTITIONS, {"message.timestamp.type": "CreateTime"})
        yield kafka


def feed(kafka: KafkaCluster, texts: Iterable[str], first: int = 0) -> tuple[int, int]:
    """Write keyed JSON documents, numbered from ``first``; return their number and bytes."""
    return feed_values(kafka, DOCUMENTS, numbered(texts, first), first)


def feed_values(
    kafka: KafkaCluster, topic: str, values: Iterable[bytes], first: int = 0
) -> tuple[int, int]:
    """Write payloads under keys numbered from ``first``; return their number and bytes."""
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "linger.ms": 50,
            "compression.type": "lz4",
            "enable.idempotence": True,
            "queue.buffering.max.kbytes": 256 << 10,
            "log_level": _LOG_ERRORS,
        }
    )
    documents = size = 0
    for number, value in enumerate(values, first):
        while True:
            try:
                producer.produce(topic, value, f"doc-{number}".encode(), number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        documents += 1
        size += len(value)
    if producer.flush(60):
        raise SystemExit("the broker did not accept all documents within 60 s")
    return documents, size


def numbered(texts: Iterable[str], first: int = 0) -> Iterator[bytes]:
    """Yield JSON documents, numbered from ``first``."""
    for number, text in enumerate(texts, first):
        yield json.dumps({"id": f"doc-{number}", "text": text}).encode()


def feed_steadily(bootstrap: str, values: Iterable[bytes], rate: float) -> None:
    """Write documents at a steady rate, in steps of 5 ms, each with the time when it is sent."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
    start = time.time()
    for sent, value in enumerate(values):
        while sent >= int((time.time() - start) * rate):
            producer.poll(0)
            time.sleep(_STEP_SECONDS)
        stamp = int(time.time() * 1000)
        producer.produce(DOCUMENTS, value, b"doc-%d" % sent, sent % PARTITIONS, timestamp=stamp)
    producer.flush(10)


@contextmanager
def application(
    kafka: KafkaCluster,
    name: str,
    shards: int,
    start: str = "earliest",
    others: Mapping[str, str] | None = None,
) -> Iterator[tuple[Settings, Mapping[str, str]]]:
    """Create an application's topics and starting offsets; delete the topics at the end.

    ``others`` are settings that differ from those of the other benchmarks. Yields its settings,
    and the same settings as environment variables for a worker.
    """
    chosen = {
        "app": name,
        "kafka.bootstrap": kafka.bootstrap,
        "topics.documents": DOCUMENTS,
        "index.shards": str(shards),
        **(others or {}),
    }
    settings = load(None, chosen)
    cluster = Cluster(settings.kafka_options())
    created = create(cluster, settings, partitions=PARTITIONS, replication=1)
    agree(cluster, settings, created.topology)
    begin(cluster, created.topology, Start.parse(start, datetime.now(UTC)))
    environment = {
        "NEARDUP_" + key.upper().replace(".", "__"): value for key, value in chosen.items()
    }
    try:
        yield settings, environment
    finally:
        made = [topic for topic in created.made if topic != settings.topics.documents]
        delete(kafka, made)


def delete(kafka: KafkaCluster, topics: list[str]) -> None:
    """Delete topics, to free their disk space."""
    admin = kafka.admin()
    for future in admin.delete_topics(topics, operation_timeout=30).values():
        with suppress(KafkaException):
            future.result(timeout=60)


@contextmanager
def worker(environment: Mapping[str, str], instance: str) -> Iterator[Program]:
    """Run a worker process with all stages on an empty state directory."""
    with (
        tempfile.TemporaryDirectory(prefix="neardup-bench-") as state,
        worker_on(Path(state) / "state", environment, instance) as program,
    ):
        yield program


def worker_on(state: Path, environment: Mapping[str, str], instance: str) -> Program:
    """Start a worker process with all stages on an existing state directory."""
    return Program(
        ["worker.cli", "run", "--no-http", "--instance", instance],
        {**environment, "NEARDUP_WORKER__STATE_DIR": str(state)},
    )


def committed_counts(
    kafka: KafkaCluster,
    group: str,
    check: Callable[[], None],
    seconds: float,
    topic: str = DOCUMENTS,
) -> Iterator[tuple[float, int]]:
    """Yield (time, documents that the group has committed), whenever the number grows.

    An offset in a transaction becomes visible when the transaction commits. Then its outputs
    are also readable for ``read_committed`` consumers. A look costs next to nothing, so it
    takes no CPU away from what is measured.
    """
    observer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": group,
            "isolation.level": "read_uncommitted",  # Otherwise it waits for open transactions.
        }
    )
    asked = [KafkaPartition(topic, number) for number in range(PARTITIONS)]
    seen = 0
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            check()
            with suppress(KafkaException):
                offsets = observer.committed(asked, timeout=5)
                reached = sum(max(0, found.offset) for found in offsets)
                if reached > seen:
                    seen = reached
                    yield time.monotonic(), reached
            time.sleep(_LOOK_SECONDS)
    finally:
        observer.close()
