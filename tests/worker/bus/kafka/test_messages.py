"""Messages as batches of records."""

from __future__ import annotations

from collections import defaultdict

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Message

from worker.bus import Header, Record, TopicPartition
from worker.bus.kafka.messages import batches_of, record_of

HEADERS: list[Header] = [("a", b"\xff"), ("b", None), ("a", b"")]


def message(topic: str, partition: int, offset: int) -> Message:
    """Return a message that differs from its neighbours in what may be absent."""
    stamped = TIMESTAMP_CREATE_TIME if offset % 3 else TIMESTAMP_NOT_AVAILABLE
    return Message(
        topic=topic,
        partition=partition,
        offset=offset,
        key=b"k%d" % offset if offset % 2 else None,
        value=None if offset % 5 == 4 else b"%d" % offset,
        headers=[*HEADERS] if offset % 4 == 1 else None,
        timestamp=(stamped, 1_000 + offset),
        leader_epoch=3,
    )


def test_each_partition_has_one_batch_with_its_messages_in_order() -> None:
    places = [("one", 0), ("one", 1), ("two", 0), ("one", 0), ("two", 0), ("one", 1)]
    messages, following = [], dict.fromkeys(places, 0)
    for place in places:
        for _ in range(7):
            messages.append(message(*place, following[place]))
            following[place] += 1
    by_place: dict[TopicPartition, list[Record]] = defaultdict(list)
    for one in messages:
        record = record_of(one)._replace(leader_epoch=-1)
        by_place[TopicPartition(record.topic, record.partition)].append(record)
    batches = batches_of(messages)
    assert [batch.place for batch in batches] == [("one", 0), ("one", 1), ("two", 0)]
    assert {batch.place: list(batch) for batch in batches} == by_place
    assert [len(batch) for batch in batches] == [14, 14, 14]


def test_what_a_message_lacks_its_record_lacks() -> None:
    (batch,) = batches_of([message("in", 0, offset) for offset in range(6)])
    assert batch.timestamps.tolist() == [-1, 1_001, 1_002, -1, 1_004, 1_005]
    assert batch.keys == [None, b"k1", None, b"k3", None, b"k5"]
    assert batch.values == [b"0", b"1", b"2", b"3", None, b"5"]
    assert batch.headers == [(), tuple(HEADERS), (), (), (), tuple(HEADERS)]
    assert batch.end == 6


def test_messages_without_headers_have_no_column_of_them() -> None:
    (batch,) = batches_of([message("in", 0, offset) for offset in (2, 3, 4)])
    assert batch.headers is None


def test_no_messages_are_no_batches() -> None:
    assert batches_of([]) == []
