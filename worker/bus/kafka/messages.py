"""Takes the messages that librdkafka has, and converts them to the port's records."""

from __future__ import annotations

import gc
from collections.abc import Callable
from operator import methodcaller
from typing import Any

from confluent_kafka import Message

from worker.bus.port import UNREADABLE_HEADERS, Header, Record

__all__ = ["burst", "record_of"]

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


_CHUNK = 500


def burst(
    consume: Callable[[int, float], list[Message]],
    sift: Callable[[list[Message]], list[Record]],
    limit: int,
    max_bytes: int,
    timeout: float,
) -> list[Record]:
    """Wait up to ``timeout`` seconds for a first message, then return what is available.

    Returns at most ``limit`` records and about ``max_bytes`` of keys and values.
    ``consume(count, seconds)`` returns at most ``count`` messages after at most ``seconds``; an
    empty list ends the burst. ``sift`` returns the records among messages, in order.

    librdkafka waits for the full number of messages that it is asked for. So the first message is
    requested alone, and the others without a wait.
    """
    records: list[Record] = []
    size = 0
    wait = timeout
    while len(records) < limit and size < max_bytes:
        typical = size // len(records) if records else max_bytes
        room = max(1, (max_bytes - size) // max(1, typical))
        messages = consume(min(_CHUNK, limit - len(records), room), wait)
        if not messages:
            break
        wait = 0
        found = sift(messages)
        for record in found:
            size += len(record.value or b"") + len(record.key or b"")
        records += found
    return records
