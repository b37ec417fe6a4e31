"""What bytes and values are, whatever field they are in."""

from __future__ import annotations

from worker.formats.unreadable import Unreadable

__all__ = ["kind_of", "utf8"]


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
