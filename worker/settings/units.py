"""Lengths of time and sizes of memory as text.

A length is ``45s``, ``90m``, ``12h``, ``30d``, or several of these: ``1d12h``. A size is
``800MiB``, ``1.5GiB`` or ``2GB``.
"""

from __future__ import annotations

import re
from decimal import Decimal

_LENGTHS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
"""From the longest to the shortest, in which order a text has them."""
_MOST_DIGITS = 9
LENGTH = re.compile("".join(rf"(?:([0-9]{{1,{_MOST_DIGITS}}}){unit})?" for unit in _LENGTHS_MS))

FOR_EVER = "none"
"""A window without end."""
_LEAST_WINDOW_MS = 1_000

_SIZES = {
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
_SIZE = re.compile(rf"([0-9]{{1,9}}(?:\.[0-9]{{1,9}})?)({'|'.join(_SIZES)})")


def duration_ms(text: str) -> int:
    """Return the length of time that a text states, in ms.

    Raises:
        ValueError: it states none.
    """
    found = LENGTH.fullmatch(text)
    if found is None or not text:
        raise ValueError(f"{text!r} is no length of time")
    parts = zip(found.groups(), _LENGTHS_MS.values(), strict=True)
    return sum(int(number) * unit for number, unit in parts if number is not None)


def duration_text(milliseconds: int) -> str:
    """Return the shortest text for a length of time; a part of a second is left out."""
    parts = []
    left = milliseconds
    for name, unit in _LENGTHS_MS.items():
        number, left = divmod(left, unit)
        if number:
            parts.append(f"{number}{name}")
    return "".join(parts) or "0s"


def window_text(window: str, others: str) -> str:
    """Return a window in its shortest form; ``others`` are what may be said instead of a length."""
    if window == FOR_EVER:
        return window
    try:
        length = duration_ms(window)
    except ValueError:
        length = 0
    if length < _LEAST_WINDOW_MS:
        raise ValueError(
            f"got {window!r}, must be {others}, or a length of at least 1s, such as 30d, 12h, 90m,"
            " 45s or 1d12h"
        )
    return duration_text(length)


def size_bytes(text: str) -> int:
    """Return the size that a text states, in bytes, rounded down.

    Raises:
        ValueError: it states none.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no size")
    number, unit = found.groups()
    return int(Decimal(number) * _SIZES[unit])


def size_text(size: int) -> str:
    """Return a size in bytes as text, in the largest unit of which it is a whole number.

    It is rounded down to whole KiB.
    """
    whole = size >> 10 << 10
    unit = next(unit for unit in _BINARY if whole % _SIZES[unit] == 0)
    return f"{whole // _SIZES[unit]}{unit}" if whole else "0KiB"
