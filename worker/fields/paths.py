"""Paths to the fields of documents, as settings have them: ``a.b``, ``a[].b`` and ``a[0].b``."""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

__all__ = ["Path", "Step", "parse", "single"]

Step: TypeAlias = str | int | None
"""A member's name, an element's number, or None for every element."""

_PART = re.compile(r"([^\[\]]+)((?:\[\d{0,9}\])*)|[^\[\]]*", re.ASCII)
_BRACKETS = re.compile(r"\[(\d*)\]")


class Path(NamedTuple):
    """A path as it is written, the member of a payload where it begins, and the steps from it."""

    name: str
    head: str
    steps: tuple[Step, ...]

    @property
    def several(self) -> bool:
        """Return whether the path leads to several values."""
        return None in self.steps


def parse(name: str) -> Path:
    """Return the path that the name of a field is.

    Raises:
        ValueError: its brackets are wrong; the message says what there is.
    """
    steps: list[Step] = []
    for part in name.split("."):
        found = _PART.fullmatch(part)
        if found is None:
            raise ValueError(
                f"got {name!r}, must be a name, or a path such as a.b, a[].b (of every element) or"
                " a[0].b (of the first)"
            )
        steps.append(found[1] if found[2] else part)
        steps += [int(number) if number else None for number in _BRACKETS.findall(found[2] or "")]
    head, *rest = steps
    return Path(name, str(head), tuple(rest))


def single(name: str) -> str:
    """Return the name of a field that leads to one value.

    Raises:
        ValueError: it doesn't, or its brackets are wrong.
    """
    if None in parse(name).steps:
        raise ValueError(f"got {name!r}, must lead to one value: a[0] does, and a[] to several")
    return name
