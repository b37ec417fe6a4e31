"""The fields of documents in settings: their paths, and the formats of times.

A path is ``a.b``, ``a[].b`` or ``a[0].b``. A time field holds any plain time, a unit or a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeAlias

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


AUTO: Final = "auto"
EXCEL: Final = "excel"
UNITS: Final = {
    "seconds": 1,
    "milliseconds": 1_000,
    "microseconds": 1_000_000,
    "nanoseconds": 1_000_000_000,
}
"""The number of each in a second."""

_SAMPLE = datetime(2024, 3, 5, 16, 7, 8, 901_234, tzinfo=UTC)
_PARTS = (
    ("microsecond", 0), ("second", 0), ("minute", 0), ("hour", 0), ("day", 1), ("month", 1),
)  # fmt: skip
"""From the finest on, with the least value of each."""
_DIRECTIVES = frozenset("YymdHIMSfjpaAbBzGVu%")
_TAKES = (
    f"must be {AUTO}, {', '.join(UNITS)}, {EXCEL}, or a pattern of strptime from the year down,"
    " such as %Y%m%d (%m is the month, %M the minute; %I needs %p)"
)


def check_time_format(time_format: str) -> None:
    """Check that a format is `AUTO`, `EXCEL`, one of `UNITS`, or a pattern that tells a time.

    A pattern is refused that leaves a gap between its parts, as %Y-%M-%d does: it would read
    everything as January.

    Raises:
        ValueError: it is none of these; the message says what there is.
    """
    if time_format in {AUTO, EXCEL, *UNITS}:
        return
    directives = re.findall("%(.?)", time_format.replace("%%", ""))
    known = _DIRECTIVES.issuperset(directives) and ("p" not in directives or "I" in directives)
    if not known or not _tells(time_format):
        raise ValueError(f"got {time_format!r}, {_TAKES}")


def width(pattern: str) -> int:
    """Return how many characters a pattern writes if it always writes as many, else 0."""
    fixed = re.search("%[^YymdHIMSjGVu%]", pattern) is None
    return len(_SAMPLE.strftime(pattern)) if fixed else 0


def _tells(pattern: str) -> bool:
    """Return whether a pattern reads what it writes of a moment, down to some part of it."""
    try:
        read = datetime.strptime(_SAMPLE.strftime(pattern), pattern).replace(tzinfo=UTC)
    except ValueError:
        return False
    moment, known = _SAMPLE, {_SAMPLE}
    for part, least in _PARTS:
        moment = moment.replace(**{part: least})  # type: ignore[arg-type]
        known.add(moment)
    return read in known


@dataclass(slots=True)
class FieldTree:
    """What is needed of a value: all of it where a path ends, otherwise these of its fields.

    ``text``: a text is in it. A tree is equal to one with the same fields.
    """

    whole: bool = False
    text: bool = False
    fields: dict[str, FieldTree] = field(default_factory=dict)


def field_tree(texts: Iterable[Path], others: Iterable[Path]) -> FieldTree:
    """Return the tree of all paths. Elements of an array need what the array needs."""
    root = FieldTree()
    for path, text in [*((path, True) for path in texts), *((path, False) for path in others)]:
        node = root
        for step in (path.head, *path.steps):
            if isinstance(step, str):
                node = node.fields.setdefault(step, FieldTree())
                node.text = node.text or text
        node.whole = True
    return root
