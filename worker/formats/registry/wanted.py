"""Which fields of documents are needed: paths, as a tree of the names that they go through."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from worker.fields import Path


@dataclass(slots=True)
class Wanted:
    """What is needed of a value: all of it where a path ends, otherwise these of its fields.

    ``text``: a text is in it. A tree is equal to one with the same fields.
    """

    whole: bool = False
    text: bool = False
    fields: dict[str, Wanted] = field(default_factory=dict)


def wanted(texts: Iterable[Path], others: Iterable[Path]) -> Wanted:
    """Return the tree of all paths. Elements of an array need what the array needs."""
    root = Wanted()
    for path, text in [*((path, True) for path in texts), *((path, False) for path in others)]:
        node = root
        for step in (path.head, *path.steps):
            if isinstance(step, str):
                node = node.fields.setdefault(step, Wanted())
                node.text = node.text or text
        node.whole = True
    return root
