"""Messages of librdkafka as the port's records."""

from __future__ import annotations

from typing import Any

from worker.bus.port import UNREADABLE_HEADERS, Record

__all__ = ["record_of"]


def record_of(message: Any) -> Record:  # noqa: ANN401 -- its stub allows for a message that failed
    """Give a message that is no error as a record."""
    try:
        headers = message.headers()
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
