"""Messages of librdkafka as the port's records."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

from worker.bus.port import UNREADABLE_HEADERS, Record

__all__ = ["record_of"]

_headers = methodcaller("headers")
"""Asks a message for them, as C code does.

Of a name that isn't UTF-8 confluent-kafka gives a result and leaves an exception behind. CPython
notices that in every call but those of its own that it has specialised, as it does with a call
that is made often: there the exception would come up in whatever is called next.
"""


def record_of(message: Any) -> Record:  # noqa: ANN401 -- its stub allows for a message that failed
    """Give a message that is no error as a record."""
    try:
        headers = _headers(message)
    except SystemError:
        # A name that isn't UTF-8. It must not be asked again: the list it keeps is half made.
        headers = UNREADABLE_HEADERS
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
