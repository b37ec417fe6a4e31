"""The answers of an index of texts."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Id: TypeAlias = str | int
"""The name of a document."""


class Hit(NamedTuple):
    """A document of an index that is a near duplicate, and its estimated similarity.

    containment: the estimated share of the text that is in the document, if the index looks for
        containment, and it is enough; see `Parameters`.
    """

    id: Id
    similarity: float
    containment: float | None = None

    def __repr__(self) -> str:
        more = "" if self.containment is None else f", containment={self.containment!r}"
        return f"Hit(id={self.id!r}, similarity={self.similarity!r}{more})"


class SimilarPair(NamedTuple):
    """Two documents of an index, and their similarity. The first was added before the second."""

    first: Id
    second: Id
    similarity: float


class Group(NamedTuple):
    """Documents that are connected by similar pairs.

    representative: the document that was added first.
    members: all of them, with the representative, in the order in which they were added.
    """

    representative: Id
    members: tuple[Id, ...]

    @property
    def size(self) -> int:
        """Return the number of members."""
        return len(self.members)
