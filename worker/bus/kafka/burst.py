"""Takes what is available: one wait for a first record, and none for more."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Message

from worker.bus.port import Record

__all__ = ["burst"]

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
