"""Connected components of matches in memory, by the ids of documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Name = tuple[int, str]
"""A number in the order of documents, and an id."""


class Components:
    """The components of what was joined so far.

    Each has a name, the least of those that its joins were given. It keeps every id that was
    joined. Documents that share an id count as one.
    """

    def __init__(self) -> None:
        """Begin without any."""
        self._nodes: dict[str, int] = {}
        self._above: list[int] = []
        self._sizes: list[int] = []
        self._names: list[Name] = []

    def join(self, ident: str, matches: Iterable[str], name: Name) -> None:
        """Join a document with those that it matches."""
        at = -1
        for one in [*matches, ident]:
            other = self._top(self._node(one, name))
            if at in {-1, other}:
                at = other
                continue
            if self._sizes[other] > self._sizes[at]:
                at, other = other, at
            self._above[other] = at
            self._sizes[at] += self._sizes[other]
            self._names[at] = min(self._names[at], self._names[other])
        self._names[at] = min(self._names[at], name)

    def _node(self, ident: str, name: Name) -> int:
        new = len(self._above)
        at = self._nodes.setdefault(ident, new)
        if at == new:
            self._above.append(new)
            self._sizes.append(1)
            self._names.append(name)
        return at

    def _top(self, at: int) -> int:
        above = self._above
        while (up := above[at]) != at:
            above[at] = at = above[up]
        return at

    def name(self, ident: str) -> Name | None:
        """Return the name of a document's component; None if it matches nothing."""
        at = self._nodes.get(ident)
        return None if at is None else self._names[self._top(at)]

    def members(self) -> Iterator[tuple[str, Name]]:
        """Yield each document with the name of its component, in the order of the joins."""
        for ident, at in self._nodes.items():
            yield ident, self._names[self._top(at)]
