"""Takes the messages that librdkafka has, and converts them to the port's records."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import methodcaller
from typing import Any

import numpy as np
from confluent_kafka import Message

from worker.bus import UNREADABLE_HEADERS, Header, Record, RecordBatch, TopicPartition

_topic, _partition = methodcaller("topic"), methodcaller("partition")
_offset, _timestamp = methodcaller("offset"), methodcaller("timestamp")
_key, _value = methodcaller("key"), methodcaller("value")
_headers = methodcaller("headers")
"""Calls ``message.headers()`` from C.

If a name isn't UTF-8, confluent-kafka returns a result with an exception set. CPython detects
this, except in calls from Python that it has specialised because they are frequent: there the
exception would surface in whatever is called next.
"""


def _readable_headers(message: object) -> tuple[Header, ...]:
    """Return a message's headers, with a mark in place of each whose name isn't UTF-8.

    confluent-kafka (2.16) has built their list nevertheless, and the message keeps it. The pair of
    such a header has NULL as its first item, which no Python code may touch. The garbage collector
    skips it, so the pair has fewer referents than the others. The name itself can't be read, and
    no producer could write it.
    """
    mark = UNREADABLE_HEADERS[0]
    for kept in gc.get_referents(message):
        if isinstance(kept, list) and len(gc.get_referents(kept)) == len(kept):
            return tuple(
                header if len(gc.get_referents(header)) == len(header) else mark for header in kept
            )
    return UNREADABLE_HEADERS


def record_of(message: Any) -> Record:  # noqa: ANN401 -- its stub allows for a message that failed
    """Return a message without an error as a record."""
    try:
        headers = _headers(message)
    except SystemError:
        # A name isn't UTF-8. Don't ask the message again: the list that it keeps is incomplete.
        headers = _readable_headers(message)
    kind, timestamp = message.timestamp()
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp if kind else -1,
        message.key(),
        message.value(),
        tuple(headers) if headers else (),
        -1 if (epoch := message.leader_epoch()) is None else epoch,
    )


def batches_of(messages: Sequence[Message]) -> list[RecordBatch]:
    """Return messages without an error as one batch for each partition, in the order they have."""
    found: dict[TopicPartition, list[Message]] = {}
    for topic, of_topic in groupby(messages, _topic):
        for partition, run in groupby(of_topic, _partition):
            found.setdefault(TopicPartition(topic, partition), []).extend(run)
    return [_batch(place, of_partition) for place, of_partition in found.items()]


def _batch(place: TopicPartition, messages: list[Message]) -> RecordBatch:
    count = len(messages)
    headers = _all_headers(messages)
    stamps = [stamp if kind else -1 for kind, stamp in map(_timestamp, messages)]
    return RecordBatch(
        place,
        np.fromiter(map(_offset, messages), np.int64, count),
        np.array(stamps, np.int64),
        list(map(_key, messages)),
        list(map(_value, messages)),
        [tuple(one) if one else () for one in headers] if any(headers) else None,
    )


def _all_headers(messages: Sequence[Message]) -> list[Sequence[Header] | None]:
    """Return what each message has of headers. None of them is asked twice; see `record_of`."""
    found: list[Sequence[Header] | None] = []
    while len(found) < len(messages):
        try:
            found.extend(map(_headers, messages[len(found) :]))
        except SystemError:  # Those before this one are in the list.
            found.append(_readable_headers(messages[len(found)]))
    return found


def _size_of(messages: Sequence[Message]) -> int:
    """Return the bytes of the keys and values of messages without an error."""
    return sum(map(len, messages)) + sum(map(len, filter(None, map(_key, messages))))


_CHUNK = 1_000


def burst(
    consume: Callable[[int, float], list[Message]],
    sift: Callable[[list[Message]], list[Message]],
    limit: int,
    max_bytes: int,
    timeout: float,
) -> list[Message]:
    """Wait up to ``timeout`` seconds for a first message, then return what is available.

    Returns at most ``limit`` messages and about ``max_bytes`` of keys and values.
    ``consume(count, seconds)`` returns at most ``count`` messages after at most ``seconds``; an
    empty list ends the burst. ``sift`` returns those of them that are delivered, in order.

    librdkafka waits for the full number of messages that it is asked for. So the first message is
    requested alone, and the others without a wait.
    """
    delivered: list[Message] = []
    size = 0
    wait = timeout
    while len(delivered) < limit and size < max_bytes:
        typical = size // len(delivered) if delivered else max_bytes
        room = max(1, (max_bytes - size) // max(1, typical))
        messages = consume(min(_CHUNK, limit - len(delivered), room), wait)
        if not messages:
            break
        wait = 0
        found = sift(messages)
        size += _size_of(found)
        delivered += found
    return delivered
