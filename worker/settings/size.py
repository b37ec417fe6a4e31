"""Sizes of memory as text: ``800MiB``, ``1.5GiB``, ``2GB``."""

from __future__ import annotations

import re
from decimal import Decimal

__all__ = ["size_bytes", "size_text"]

_UNITS = {
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
_BINARY = ("TiB", "GiB", "MiB", "KiB")
_SIZE = re.compile(rf"([0-9]{{1,9}}(?:\.[0-9]{{1,9}})?)({'|'.join(_UNITS)})")


def size_bytes(text: str) -> int:
    """Return the size that a text states, in bytes, rounded down.

    Raises:
        ValueError: it states none.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no size")
    number, unit = found.groups()
    return int(Decimal(number) * _UNITS[unit])


def size_text(size: int) -> str:
    """Return a size in bytes as text, in the largest unit of which it is a whole number.

    It is rounded down to whole KiB.
    """
    whole = size >> 10 << 10
    unit = next(unit for unit in _BINARY if whole % _UNITS[unit] == 0)
    return f"{whole // _UNITS[unit]}{unit}" if whole else "0KiB"
