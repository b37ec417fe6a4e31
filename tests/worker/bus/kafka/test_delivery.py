"""What delivery reports tell, and what they leave open."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, islice

import pytest
from confluent_kafka import KafkaError, Message

from worker.bus import AnyOutgoing, BusError, LogReader, Outgoing, OutgoingBatch, TopicPartition
from worker.bus.kafka.delivery import Delivered
from worker.bus.memory.bus import MemoryBus

RECORDS = [Outgoing("out", 0, None, b"a"), Outgoing("out", None, b"key", b"b")]


def report(partition: int, offset: int) -> Message:
    """Return a delivery report of a record on ``out``."""
    return Message(topic="out", partition=partition, offset=offset, value=b"a")


def delivered(*reports: tuple[KafkaError | None, Message]) -> Delivered:
    """Return the reports of the records, in order, as librdkafka would call them."""
    return of(RECORDS, *reports)


def of(records: Sequence[AnyOutgoing], *reports: tuple[KafkaError | None, Message]) -> Delivered:
    """Return the reports of the first of some records, in order."""
    found = Delivered(records)
    calls = chain.from_iterable(islice(own, len(batch.values)) for batch, own in found.reports())
    for call, (error, message) in zip(calls, reports, strict=False):
        call(error, message)
    return found


@pytest.fixture
def bus() -> MemoryBus:
    """Return a log with a committed record in each of two partitions."""
    bus = MemoryBus()
    bus.create_topic("out", 2)
    bus.append_many([Outgoing("out", 0, None, b"a"), Outgoing("out", 1, None, b"b")])
    return bus


def kept(found: Delivered, bus: MemoryBus) -> list[bool]:
    def reader(topics: Collection[str]) -> LogReader:
        return bus.log_reader("group", topics)

    return found.kept(reader, 5)


def test_records_are_found_where_they_were_written(bus: MemoryBus) -> None:
    both = delivered((None, report(0, 0)), (None, report(1, 0)))
    assert kept(both, bus) == [True, True]


def test_a_record_is_only_where_it_was_written(bus: MemoryBus) -> None:
    transaction = bus.begin("other")
    transaction.append_many([Outgoing("out", 1, None, b"aborted")])
    transaction.abort()
    later = delivered((None, report(0, 0)), (None, report(1, 1)))
    assert kept(later, bus) == [True, False]


def test_a_transaction_whose_records_were_not_all_written_has_no_effect(bus: MemoryBus) -> None:
    assert kept(delivered((None, report(0, 0))), bus) == []
    failed = KafkaError(KafkaError._MSG_TIMED_OUT)
    assert kept(delivered((None, report(0, 0)), (failed, report(1, -1))), bus) == []


def test_an_offset_that_the_broker_did_not_name_is_not_guessed(bus: MemoryBus) -> None:
    unnamed = delivered((None, report(0, 0)), (None, report(1, -1001)))
    with pytest.raises(BusError, match="did not say where"):
        kept(unnamed, bus)


def test_what_retention_has_deleted_cannot_be_seen(bus: MemoryBus) -> None:
    bus.trim("out", 0, 1)
    with pytest.raises(BusError, match="out"):
        kept(delivered((None, report(0, 0)), (None, report(1, 0))), bus)


def test_refused_records_are_named() -> None:
    refused = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
    found = delivered((refused, report(0, -1)), (None, report(1, 0)))
    assert found.refusals() == RECORDS[:1]


def test_the_last_offset_of_each_partition_is_known() -> None:
    assert delivered((None, report(0, 4)), (None, report(1, 7))).ends() == {
        TopicPartition("out", 0): 4,
        TopicPartition("out", 1): 7,
    }


def test_an_offset_that_the_brokers_did_not_say_is_not_made_up() -> None:
    unnamed = Message(topic="out", partition=1, value=b"b")
    assert delivered((None, report(0, 4)), (None, unnamed)).ends() == {
        TopicPartition("out", 0): 4,
        TopicPartition("out", 1): None,
    }


COLUMNS = OutgoingBatch("out", None, [b"k", b"l", b"m"], [b"1", b"2", b"3"], [[]] * 3, [None] * 3)
"""Records of which each goes to the partition that its key chooses."""


def test_each_record_of_a_batch_is_where_it_was_written(bus: MemoryBus) -> None:
    transaction = bus.begin("other")
    transaction.append_many([Outgoing("out", 1, None, b"aborted")])
    transaction.abort()
    one = Outgoing("out", 0, None, b"a")
    reports = [report(0, 0), report(1, 1), report(0, 0), report(1, 1), report(0, 0)]
    found = of([one, COLUMNS, one], *((None, told) for told in reports))
    assert found.topics == ["out"]
    assert found.ends() == {TopicPartition("out", 0): 0, TopicPartition("out", 1): 1}
    assert kept(found, bus) == [True, False, True, False, True]


def test_a_batch_of_which_a_record_was_not_written_has_no_effect(bus: MemoryBus) -> None:
    failed = KafkaError(KafkaError._MSG_TIMED_OUT)
    found = of([COLUMNS], (None, report(0, 0)), (failed, report(1, -1)), (None, report(1, 0)))
    assert kept(found, bus) == []


@pytest.mark.parametrize("partition", [None, 1])
def test_refused_records_of_a_batch_are_named(partition: int | None) -> None:
    refused = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
    one = Outgoing("out", 0, None, b"2")  # Another with the same value was written.
    second = Message(topic="out", partition=1, offset=-1, key=b"l", value=b"2")
    fine = (None, report(1, 0))
    found = of([one, COLUMNS._replace(partition=partition)], fine, fine, (refused, second), fine)
    assert found.refusals() == [Outgoing("out", partition, b"l", b"2")]
    assert list(found.refused.values()) == ["MSG_SIZE_TOO_LARGE"]
