"""A byte flips in a broker's segment: nothing from there on is handed out, and it is said."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.bus_seats import until
from tests.support.clusters import ClusterFactory
from worker.bus import LogReader, PartitionUnreadable, Record, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions

BATCHES, DAMAGED = 6, 3
"""One record each."""


def _flip(segment: Path, text: bytes) -> None:
    data = bytearray(segment.read_bytes())
    data[data.index(text)] ^= 1
    segment.write_bytes(data)


@pytest.mark.slow(ci=False)
def test_nothing_behind_damaged_records_is_handed_out(kafka_cluster: ClusterFactory) -> None:
    kafka = kafka_cluster(1)
    topic = kafka.create_topic("damaged", 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for partition in range(2):
        for number in range(BATCHES):
            producer.produce(topic, partition=partition, value=b"record-%d" % number)
            assert producer.flush(30) == 0
    (segment,) = kafka.segments(1, topic, 0)
    _flip(segment, b"record-%d" % DAMAGED)

    whole, damaged = TopicPartition(topic, 1), TopicPartition(topic, 0)
    with closing(KafkaBus(KafkaOptions(kafka.bootstrap)).log_reader("anybody", [topic])) as reader:
        for _ in range(2):  # Started anew it stops at the same place.
            read: list[Record] = []
            for place in (whole, damaged):
                reader.start(place, 0)
            until(partial(_stopped, reader, read), "an error of the damaged partition")
            assert [r.value for r in read if r.partition == damaged.partition] == [
                b"record-%d" % number for number in range(DAMAGED)
            ]
            with pytest.raises(
                PartitionUnreadable, match=r"damaged\[0\] .* offset 3: .*damaged"
            ) as raised:
                reader.read(100, 1 << 20, 0.1)
            assert (raised.value.partition, raised.value.position) == (damaged, DAMAGED)
            reader.stop(damaged)
            until(partial(_all_of, whole, reader, read), "the other partition")


def _stopped(reader: LogReader, read: list[Record]) -> bool:
    try:
        read += reader.read(100, 1 << 20, 0.1)
    except PartitionUnreadable:
        return True
    return False


def _all_of(place: TopicPartition, reader: LogReader, read: list[Record]) -> bool:
    read += reader.read(100, 1 << 20, 0.1)
    return [r.offset for r in read if r.partition == place.partition] == list(range(BATCHES))
