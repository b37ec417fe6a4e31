"""What callers may give for a number, and how a message shows what they gave."""

from __future__ import annotations

from numbers import Integral, Real
from reprlib import Repr
from typing import Final

_SHOWN: Final = Repr()
_SHOWN.maxother = 60


def is_integer(value: object) -> bool:
    """Return whether something is an integer, Python's or numpy's; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return whether something is a real number, Python's or numpy's; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def shown(value: object) -> str:
    """Return a value, cut to a line, and its type."""
    if value is None:
        return "None"
    return f"{' '.join(_SHOWN.repr(value).split())} of type {type(value).__name__}"
