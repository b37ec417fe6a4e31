"""Converts librdkafka's messages to the port's records."""

from __future__ import annotations

import gc
from operator import methodcaller
from typing import Any

from worker.bus.port import UNREADABLE_HEADERS, Header, Record

__all__ = ["record_of"]

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
