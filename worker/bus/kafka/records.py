"""Messages of librdkafka as the port's records."""

from __future__ import annotations

import gc
from operator import methodcaller
from typing import Any

from worker.bus.port import UNREADABLE_HEADERS, Header, Record

__all__ = ["record_of"]

_headers = methodcaller("headers")
"""Asks a message for them, as C code does.

Of a name that isn't UTF-8 confluent-kafka gives a result and leaves an exception behind. CPython
notices that in every call but those of its own that it has specialised, as it does with a call
that is made often: there the exception would come up in whatever is called next.
"""


def _readable_headers(message: object) -> tuple[Header, ...]:
    """Return a message's headers; a mark stands for each whose name isn't UTF-8.

    confluent-kafka (2.16) has built their list nevertheless, and the message keeps it. The pair of
    such a header has nothing in its first place, which no Python code may touch. The collector
    sees what is there, and so tells it from the others. The name itself can't be had, and no
    producer could write it.
    """
    mark = UNREADABLE_HEADERS[0]
    for kept in gc.get_referents(message):
        if isinstance(kept, list) and len(gc.get_referents(kept)) == len(kept):
            return tuple(
                header if len(gc.get_referents(header)) == len(header) else mark for header in kept
            )
    return UNREADABLE_HEADERS


def record_of(message: Any) -> Record:  # noqa: ANN401 -- its stub allows for a message that failed
    """Give a message that is no error as a record."""
    try:
        headers = _headers(message)
    except SystemError:
        # A name that isn't UTF-8. It must not be asked again: the list it keeps is half made.
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
    )
