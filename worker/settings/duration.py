"""Lengths of time as text: ``45s``, ``90m``, ``12h``, ``30d``, or several of these: ``1d12h``."""

from __future__ import annotations

import re

__all__ = ["duration_ms", "duration_text"]

_UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
"""From the longest to the shortest, in which order a text has them."""
_MOST_DIGITS = 9
_PARTS = re.compile("".join(rf"(?:([0-9]{{1,{_MOST_DIGITS}}}){unit})?" for unit in _UNITS_MS))


def duration_ms(text: str) -> int:
    """Return the length of time that a text states, in ms.

    Raises:
        ValueError: it states none.
    """
    found = _PARTS.fullmatch(text)
    if found is None or not text:
        raise ValueError(f"{text!r} is no length of time")
    parts = zip(found.groups(), _UNITS_MS.values(), strict=True)
    return sum(int(number) * unit for number, unit in parts if number is not None)


def duration_text(milliseconds: int) -> str:
    """Return the shortest text for a length of time; a part of a second is left out."""
    parts = []
    left = milliseconds
    for name, unit in _UNITS_MS.items():
        number, left = divmod(left, unit)
        if number:
            parts.append(f"{number}{name}")
    return "".join(parts) or "0s"
