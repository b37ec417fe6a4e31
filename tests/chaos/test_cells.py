"""The short matrix that runs with all tests: one fault of a kind, on three nodes."""

from contextlib import suppress
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from chaos.cell import Cell, Protocol
from chaos.matrix import CELLS, run_of
from chaos.report import Teller
from chaos.running import Ground, run_cell
from chaos.strike import Strike
from localkafka.broker import wait_until
from worker.admin.cluster import Cluster
from worker.bus import BusError, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions

pytestmark = [pytest.mark.slow(ci=False), pytest.mark.kafka, pytest.mark.timeout(400)]

DOCUMENTS = 2_500
FEW = 1_000
RATE = 250.0
PARTITIONS = 6
LOOKS = 3


@pytest.mark.parametrize(
    ("protocol", "strike"),
    [
        ("classic", Strike(2.0, "worker-kill", "beta", 8.0)),
        ("consumer", Strike(2.0, "zombie", "beta", 9.0)),
        ("classic", Strike(2.0, "broker-kill", "transactions", 0.0)),
        ("classic", Strike(2.0, "endtxn", "drop response", 4.0)),
    ],
    ids=lambda value: value if isinstance(value, str) else value.fault,
)
def test_nothing_is_lost_doubled_or_judged_otherwise(
    three_nodes: Ground, protocol: Protocol, strike: Strike
) -> None:
    # How fast it recovers is a matter of the full matrix, on a machine that does nothing else.
    cell = replace(CELLS[strike.fault], gap=None, wait=None, upstream_gap=None)
    run = replace(run_of(cell, DOCUMENTS, 1, rate=RATE, schedule=[strike]), shards=(1, 4))
    outcome = run_cell(cell, protocol, three_nodes, run, Teller())
    assert not outcome.problems, "\n".join(outcome.problems)
    assert [hit.fault for hit in outcome.hits] == [strike.fault]


@pytest.mark.parametrize(
    ("protocol", "cell", "strike"),
    [
        ("consumer", replace(CELLS["time"], retention=12.0), Strike(1.0, "idle", "alpha", 0.0)),
        (
            "classic",
            replace(CELLS["aborting-input"], retention=None),
            Strike(2.0, "worker-kill", "beta", 0.0),
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Cell) else "",
)
def test_neither_time_nor_aborted_input_changes_anything(
    three_nodes: Ground, protocol: Protocol, cell: Cell, strike: Strike
) -> None:
    run = replace(run_of(cell, FEW, 1, rate=RATE, schedule=[strike]), shards=(4,))
    outcome = run_cell(cell, protocol, three_nodes, run, Teller())
    assert not outcome.problems, "\n".join(outcome.problems)
    assert [hit.fault for hit in outcome.hits] == [strike.fault]


def test_offsets_are_told_once_there_are_leaders_again(three_nodes: Ground, app_id: str) -> None:
    brokers, _ = three_nodes
    topic = brokers.create_topic(app_id, PARTITIONS)
    cluster = Cluster(KafkaOptions(brokers.bootstrap), seconds=60)
    empty = {TopicPartition(topic, number): (0, 0) for number in range(PARTITIONS)}

    def known() -> bool:
        with suppress(BusError):  # Not every broker has heard of the topic yet.
            return cluster.ranges({topic: PARTITIONS}) == empty
        return False

    wait_until(known, 60, "every broker to know the topic")
    brokers.kill(3)
    try:
        for _ in range(LOOKS):
            assert cluster.ranges({topic: PARTITIONS}) == empty
    finally:
        brokers.start(3)


def test_a_log_is_trimmed_by_whoever_leads_it_now(three_nodes: Ground, app_id: str) -> None:
    brokers, _ = three_nodes
    place = TopicPartition(brokers.create_topic(app_id), 0)
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "log_level": 0})
    for _ in range(3):
        producer.produce(place.topic, b"x", partition=0)
    assert producer.flush(60) == 0
    bus = KafkaBus(KafkaOptions(brokers.bootstrap))
    bus.trim(*place, 1)
    leader = producer.list_topics(place.topic, 60).topics[place.topic].partitions[0].leader
    brokers.stop(leader)  # It hands over, and is back as one of those that follow.
    brokers.start(leader)
    bus.trim(*place, 2)
    assert Cluster(KafkaOptions(brokers.bootstrap), 60).ranges({place.topic: 1}) == {place: (2, 3)}
