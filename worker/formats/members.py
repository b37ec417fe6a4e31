"""The members of a JSON object, as ranges of its bytes; nothing is decoded or written anew."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_NAME = re.compile(rb'[ \t\r\n]*("(?:[^"\\]|\\.)*")[ \t\r\n]*:', re.DOTALL)
_OPEN, _CLOSED = np.frombuffer(b"[{", np.uint8), np.frombuffer(b"]}", np.uint8)
_QUOTE, _COMMA = ord('"'), ord(",")


class Member(NamedTuple):
    """A member: its name, and the range from after the brace or comma to the next one."""

    name: str
    start: int
    end: int


def members(value: bytes) -> list[Member] | None:
    """Return the members of an object, in order; None if ``value`` isn't an object.

    Takes time linear in the size, and no stack, however deeply the object is nested. What is
    nested isn't checked.
    """
    # An escape becomes two bytes that mean nothing; then each quote begins or ends a string.
    data = np.frombuffer(_ESCAPE.sub(b"__", value), np.uint8)
    outside = np.cumsum(data == _QUOTE) % 2 == 0
    steps = np.isin(data, _OPEN).astype(np.int8) - np.isin(data, _CLOSED).astype(np.int8)
    depth = np.cumsum(np.where(outside, steps, 0))
    inside = np.flatnonzero(depth >= 1)
    if not len(inside):
        return None
    first, last = int(inside[0]), int(inside[-1]) + 1
    whole = (
        value[:first].strip(b" \t\r\n") == b""
        and value[first : first + 1] == b"{"
        and value[last : last + 1] == b"}"
        and value[last + 1 :].strip(b" \t\r\n") == b""
        and last - first == len(inside)
    )
    if not whole:
        return None
    commas = np.flatnonzero(outside & (depth == 1) & (data == _COMMA)).tolist()
    cuts = [first, *commas, last]
    found = [
        Member(_name(value, before + 1, end), before + 1, end) for before, end in pairwise(cuts)
    ]
    if len(found) == 1 and not found[0].name and not value[first + 1 : last].strip(b" \t\r\n"):
        return []
    return found


def _name(value: bytes, start: int, end: int) -> str:
    """Return a member's name; an empty one if it has none, or one that is no text."""
    found = _NAME.match(value, start, end)
    try:
        return msgspec.json.decode(found[1], type=str) if found else ""
    except msgspec.DecodeError:
        return ""


def without_members(value: bytes, names: Collection[str]) -> bytes:
    """Return an object without its members of these names, however often and however spelt.

    Each takes a comma beside it along. All other bytes stay.

    Raises:
        ValueError: ``value`` isn't an object.
    """
    found = members(value)
    if found is None:
        raise ValueError("not a JSON object")
    if not found:
        return value
    kept = [value[one.start : one.end] for one in found if one.name not in names]
    return value[: found[0].start] + b",".join(kept) + value[found[-1].end :]
