"""A broker's disk changes a byte: nothing behind it is ever handed out."""

from collections.abc import Callable
from functools import partial

import pytest
from confluent_kafka import Producer

from localkafka.broker import KafkaCluster, wait_until
from tests.support.bus_seats import Seat
from tests.support.clusters import ClusterFactory
from tests.support.kafka_harness import KafkaHarness
from worker.bus import BusError, LogReader, Record, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions

BATCHES = 6
PER_BATCH = 10
DAMAGED = 3


@pytest.mark.slow(ci=False)
def test_records_behind_a_damaged_batch_are_never_read(kafka_cluster: ClusterFactory) -> None:
    cluster = kafka_cluster(1)
    harness = KafkaHarness(cluster.bootstrap, KafkaBus(KafkaOptions(cluster.bootstrap)), "damage")
    topic = harness.topic(2)
    bad, good = TopicPartition(topic, 0), TopicPartition(topic, 1)
    _write(cluster, topic)
    _flip(cluster, bad, f"record-{DAMAGED}-5".encode())
    before = list(range(DAMAGED * PER_BATCH))

    seat = harness.alone(topic, group="damage")
    seat.start()
    error = _until_refused(partial(_polled, seat))
    assert f"{topic}[0]" in error
    assert f"offset {DAMAGED * PER_BATCH}" in error
    assert "restore the log" in error
    assert _offsets(seat, bad) == before
    assert set(_offsets(seat, good)) <= set(range(BATCHES * PER_BATCH))
    seat.member.commit([], {bad: before[-1] + 1})
    seat.member.close()

    # Whoever comes next stops there, too, wherever in the batch it begins.
    for start in (before[-1] + 1, DAMAGED * PER_BATCH + 7):
        again = harness.join("damage", [topic], "alone")
        harness.settle([again], topic)
        again.start({bad: start, good: 0})
        assert f"{topic}[0]" in _until_refused(partial(_polled, again))
        assert _offsets(again, bad) == []
        again.member.close()

    with_reader = harness.bus.log_reader("damage", [topic])
    with_reader.start(bad, 0)
    error, read = _read(with_reader)
    assert f"{topic}[0]" in error
    assert {record.offset for record in read} <= set(before)
    harness.close()


def _write(cluster: KafkaCluster, topic: str) -> None:
    """Write batches of different sizes, so that one can't be taken for another's neighbour."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 1000})
    for batch in range(BATCHES):
        for partition in (0, 1):
            for number in range(PER_BATCH):
                value = f"record-{batch}-{number}".encode() + b"." * batch
                producer.produce(topic, value, partition=partition)
        assert producer.flush(60) == 0


def _flip(cluster: KafkaCluster, place: TopicPartition, what: bytes) -> None:
    cluster.stop(1)
    (segment,) = cluster.segments(1, *place)
    content = bytearray(segment.read_bytes())
    assert content.count(what) == 1
    content[content.index(what)] ^= 1
    segment.write_bytes(content)
    cluster.start(1)


def _polled(seat: Seat) -> object:
    return seat.poll().batches


def _until_refused(poll: Callable[[], object]) -> str:
    with pytest.raises(BusError) as raised:
        wait_until(lambda: bool(poll()) and False, 30, "an error")
    return str(raised.value)


def _read(reader: LogReader) -> tuple[str, list[Record]]:
    read: list[Record] = []
    try:
        error = _until_refused(lambda: read.extend(reader.read(500, 1 << 20, 0.1)))
    finally:
        reader.close()
    return error, read


def _offsets(seat: Seat, place: TopicPartition) -> list[int]:
    return [record.offset for record in seat.records if record[:2] == place]
