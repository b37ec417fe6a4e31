"""An index for the most similar documents, however similar they are."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from lsh.fingerprint import Fingerprinter
from lsh.forest import Forest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lsh.parameters import Parameters

__all__ = ["NearestIndex", "Neighbour", "unknown_ids"]


class Neighbour(NamedTuple):
    """A document, and its estimated Jaccard similarity."""

    id: Hashable
    similarity: float


class NearestIndex:
    """Documents in memory, ranked by their similarity to a text."""

    def __init__(self, parameters: Parameters) -> None:
        """Begin without documents.

        parameters: of the fingerprints. Bands, rows and threshold play no part.
        """
        self._fingerprinter = Fingerprinter(parameters)
        self._forest = Forest(parameters.slots)
        self._ids: list[Hashable] = []  # of the forest's rows
        self._known: dict[Hashable, int | None] = {}  # rows; None for what is blank

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, id: object) -> bool:  # noqa: A002 -- what it is
        return id in self._known

    def add(self, id: Hashable, text: str) -> None:  # noqa: A002 -- what it is
        """Add one document. Many at once are much faster: see `add_many`."""
        self.add_many([(id, text)])

    def add_many(self, documents: Iterable[tuple[Hashable, str]]) -> None:
        """Add documents: ids and texts. A blank text is in the index, and is like no other.

        Raises ValueError, and adds nothing, if an id is known already or occurs twice.
        """
        listed = list(documents)
        prints = self._fingerprinter.fingerprint([text for _, text in listed])
        self.add_sketches([id_ for id_, _ in listed], prints.sketches, prints.blank)

    def add_sketches(
        self,
        ids: Iterable[Hashable],
        sketches: NDArray[np.uint8],
        blank: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add n sets of anything, by their sketches.

        sketches: uint8[n, slots]. blank: bool[n], which ones are of nothing; None means none.

        Raises ValueError as `add_many` does, and if there are not as many ids.
        """
        known = unknown_ids(ids, len(sketches), self._known)
        self._known.update(dict.fromkeys(known))
        if blank is not None:
            known = [id_ for id_, nothing in zip(known, blank.tolist(), strict=True) if not nothing]
            sketches = sketches[~blank]
        self._known.update({ident: row for row, ident in enumerate(known, len(self._ids))})
        self._forest.add(sketches)
        self._ids += known

    def remove(self, id: Hashable) -> None:  # noqa: A002 -- what it is
        """Remove one document. Raises KeyError if the index doesn't have the id."""
        row = self._known.pop(id)
        if row is None:
            return
        self._forest.remove(row)
        if self._forest.sparse:
            self._ids = [self._ids[kept] for kept in self._forest.rows.tolist()]
            self._known.update({ident: place for place, ident in enumerate(self._ids)})
            self._forest = self._forest.compacted()

    def nearest(
        self, text: str, k: int, *, recall: float = 0.98, least: float = 0.0
    ) -> list[Neighbour]:
        """Return the k documents that are most similar to a text, best first.

        recall: the least probability that a document as similar as the k-th is compared. At
            1.0, the text is compared with all documents.
        least: what is less similar isn't looked for, and isn't returned. If there are fewer
            than k such documents, 0.2 saves comparing all.

        Equally similar documents are in the order in which they were added. A blank text has
        no neighbour.
        """
        prints = self._fingerprinter.fingerprint([text])
        if prints.blank[0]:
            return []
        return self.nearest_sketch(prints.sketches[0], k, recall=recall, least=least)

    def nearest_sketch(
        self, sketch: NDArray[np.uint8], k: int, *, recall: float = 0.98, least: float = 0.0
    ) -> list[Neighbour]:
        """Return what `nearest` returns, for a set of anything by its sketch, uint8[slots]."""
        found = self._forest.nearest(sketch, k, recall=recall, least=least)
        pairs = zip(found.rows.tolist(), found.similarity.tolist(), strict=True)
        return [Neighbour(self._ids[row], similarity) for row, similarity in pairs]


def unknown_ids(ids: Iterable[Hashable], count: int, known: Collection[Hashable]) -> list[Hashable]:
    """Return `count` ids, after a look at them.

    Raises ValueError if there are more or fewer, or if one is known or occurs twice.
    """
    listed = list(ids)
    if len(listed) != count:
        message = f"ids: got {len(listed)}, takes as many as there are sets, {count}"
        raise ValueError(message)
    seen: set[Hashable] = set()
    for id_ in listed:
        if id_ in known or id_ in seen:
            message = f"ids: {id_!r} is in the index already"
            raise ValueError(message)
        seen.add(id_)
    return listed
