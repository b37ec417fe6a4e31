"""The values of single fields of a payload, or why they can't be read."""

from __future__ import annotations

from datetime import UTC, datetime

from worker.formats.unreadable import Unreadable

__all__ = ["kind_of", "time_of", "utf8"]

_SECONDS_BELOW = 260_000_000_000
"""Numbers below this are seconds (up to the year 10,000); others are ms (from 1978 on)."""


def utf8(value: bytes) -> str:
    """Return bytes decoded as UTF-8.

    Raises:
        Unreadable: they are not valid UTF-8.
    """
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Unreadable("invalid-utf8", f"{error.reason} at byte {error.start}") from None


def kind_of(value: object) -> str:
    """Return the JSON name of a value's type."""
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"


def time_of(given: object, field: str) -> int:
    """Return a field's time in milliseconds since 1970.

    The value is ISO 8601 (UTC if it has no zone), or seconds or milliseconds since 1970.

    Raises:
        Unreadable: the value is none of these.
    """
    if isinstance(given, str):
        try:
            moment = datetime.fromisoformat(given)
        except ValueError:
            raise Unreadable("bad-time", f"field {field!r} is not an ISO 8601 time") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    if isinstance(given, int | float) and not isinstance(given, bool):
        if abs(given) < _SECONDS_BELOW:
            return int(given * 1000)
        if abs(given) < _SECONDS_BELOW * 1000:
            return int(given)
        raise Unreadable(
            "bad-time", f"field {field!r} is {given}, neither seconds nor milliseconds"
        )
    raise Unreadable("time-wrong-type", f"field {field!r} is {kind_of(given)}, not a time")
