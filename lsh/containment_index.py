"""An index for containment: which documents hold a text, or are held by it, for the most part.

A short text and a long document that contains it have a small Jaccard similarity, which depends
on their sizes. So documents are divided by size. Within a partition, the least similarity that a
containment implies follows from the sizes at its edge, and with it the length of the runs of
slots by which documents are found (`lsh.forest`). Partitions are geometric, two for each
doubling: they never have to be divided again as the index grows.

Source: Zhu, Nargesian, Pu, Miller, "LSH Ensemble: Internet-scale domain search", VLDB 2016.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from lsh.containment import containment as estimated
from lsh.containment import containment_error, jaccard_of_containment
from lsh.fingerprint import Fingerprinter
from lsh.forest import Forest, run_for
from lsh.nearest_index import unknown_ids
from lsh.sized import sized

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.columns import Column
    from lsh.parameters import Parameters

__all__ = ["Contained", "ContainmentIndex"]

_PARTITIONS = 2  # for each doubling of the size
_SLACK = 1e-6  # a product in floating point may be a little off the integer that it is


class Contained(NamedTuple):
    """A document that a query found.

    containment: the estimate, in [0, 1]. error: its standard error.
    """

    id: Hashable
    containment: float
    error: float


class _Partition:
    """Documents of similar sizes. Their rows are those of the forest."""

    def __init__(self, slots: int) -> None:
        self.forest = Forest(slots)
        self.ids: list[Hashable] = []
        self.sizes = np.empty(0, dtype=np.int64)

    def add(
        self, ids: list[Hashable], sketches: NDArray[np.uint8], sizes: NDArray[np.int64]
    ) -> None:
        self.forest.add(sketches)
        self.ids += ids
        self.sizes = np.concatenate((self.sizes, sizes))


class ContainmentIndex:
    """Documents in memory, to be queried for containment."""

    def __init__(self, parameters: Parameters, *, recall: float = 0.98) -> None:
        """Begin without documents.

        parameters: of the fingerprints. Bands, rows and threshold play no part.
        recall: the least probability that a document exactly at the containment asked for is
            compared. An estimate decides then, so see `query` for what is found.
        """
        self._fingerprinter = Fingerprinter(parameters)
        self._recall = recall
        self._partitions: dict[int, _Partition] = {}
        self._ids: set[Hashable] = set()

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: object) -> bool:  # noqa: A002 -- what it is
        return id in self._ids

    def add(self, id: Hashable, text: str) -> None:  # noqa: A002 -- what it is
        """Add one document. Many at once are much faster: see `add_many`."""
        self.add_many([id], [text])

    def add_many(self, ids: Iterable[Hashable], texts: Column) -> None:
        """Add n documents. A blank text has no shingle to be found by, and is left out.

        Raises ValueError, and adds nothing, if an id is known already or occurs twice, or if
        there are not as many texts.
        """
        self.add_sketches(ids, *sized(self._fingerprinter, texts))

    def add_sketches(
        self, ids: Iterable[Hashable], sketches: NDArray[np.uint8], sizes: NDArray[np.int64]
    ) -> None:
        """Add n sets of anything, by their sketches.

        sketches: uint8[n, slots]. sizes: int64[n], the number of elements of each set. An empty
            set is left out. See `lsh.tokens`, whose `shingle_counts` are sizes.

        Raises ValueError as `add_many` does.
        """
        known = unknown_ids(ids, len(sizes), self._ids)
        sizes = sizes.astype(np.int64)
        numbers = np.floor(_PARTITIONS * np.log2(np.maximum(sizes, 1))).astype(np.int64)
        numbers[sizes == 0] = -1
        for number in np.unique(numbers[sizes > 0]).tolist():
            rows = np.flatnonzero(numbers == number)
            partition = self._partitions.get(number)
            if partition is None:
                partition = self._partitions[number] = _Partition(sketches.shape[1])
            partition.add([known[row] for row in rows.tolist()], sketches[rows], sizes[rows])
        self._ids.update(id_ for id_, size in zip(known, sizes.tolist(), strict=True) if size)

    def query(
        self,
        text: str,
        containment: float = 0.9,
        *,
        of: Literal["query", "document"] = "query",
        slack: float = 2.0,
    ) -> list[Contained]:
        """Return the documents with a containment that may reach `containment`, best first.

        containment: the least containment, in (0, 1].
        of: whose containment. "query": how much of the text is in a document, as with a quote
            that is looked for. "document": how much of a document is in the text, as with a
            reply that quotes mails.
        slack: documents are returned whose estimate is at least `containment` minus this many
            standard errors. With 2, one in 40 of those exactly at `containment` is estimated too
            low. With 0, it is every other one. The more slack, the more must be looked at.

        Equal estimates are in the order of their sizes, then in that of their insertion. A
        blank text finds nothing.

        Raises ValueError if `containment` is out of range.
        """
        sketches, sizes = sized(self._fingerprinter, [text])
        if not sizes[0]:
            return []
        return self.query_sketch(sketches[0], int(sizes[0]), containment, of=of, slack=slack)

    def query_sketch(
        self,
        sketch: NDArray[np.uint8],
        size: int,
        containment: float = 0.9,
        *,
        of: Literal["query", "document"] = "query",
        slack: float = 2.0,
    ) -> list[Contained]:
        """Return what `query` returns, for a set of anything by its sketch and its size.

        sketch: uint8[slots]. size: the number of elements, at least 1.
        """
        if not 0 < containment <= 1:
            message = f"containment: got {containment!r}, takes a number above 0 and at most 1"
            raise ValueError(message)
        found: list[Contained] = []
        for number in sorted(self._partitions):
            partition = self._partitions[number]
            rows = self._candidates(partition, sketch, size, containment, of)
            found += _verified(partition, rows, sketch, size, containment, of, slack)
        return sorted(found, key=lambda one: -one.containment)

    def _candidates(
        self,
        partition: _Partition,
        sketch: NDArray[np.uint8],
        size: int,
        containment: float,
        of: Literal["query", "document"],
    ) -> NDArray[np.int64]:
        """Return the rows of a partition that may reach the containment."""
        sizes = partition.sizes
        if of == "query":
            able = sizes >= containment * size - _SLACK
            ratio = sizes.max() / size
        else:
            able = containment * sizes <= size + _SLACK
            ratio = size / sizes.min()
        if not able.any():
            return np.empty(0, dtype=np.int64)
        # For a given containment, the similarity is the less, the larger the ratio.
        least = float(jaccard_of_containment(containment, max(ratio, containment)))
        rows = partition.forest.meeting(sketch, run_for(least, len(sketch), self._recall))
        return rows[able[rows]]


def _verified(  # noqa: PLR0913, PLR0917 -- a query
    partition: _Partition,
    rows: NDArray[np.int64],
    sketch: NDArray[np.uint8],
    size: int,
    containment: float,
    of: Literal["query", "document"],
    slack: float,
) -> list[Contained]:
    """Return those candidates whose estimates are high enough."""
    sizes, slots = partition.sizes[rows], len(sketch)
    found = estimated(sketch, size, partition.forest.sketches[rows], sizes)
    ratio = sizes / np.float64(size)
    if of == "document":
        # The intersection is the same: a share of the other set.
        found, ratio = np.minimum(found / ratio, 1.0), 1.0 / ratio
    enough = found >= containment - slack * containment_error(containment, ratio, slots)
    errors = containment_error(found, ratio, slots)
    return [
        Contained(partition.ids[row], float(share), float(error))
        for row, share, error in zip(rows[enough], found[enough], errors[enough], strict=True)
    ]
