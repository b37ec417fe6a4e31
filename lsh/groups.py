"""Documents of an index that belong together: all pairs that share a bucket, and groups.

Both work on all keys of all documents, without the limits of a bucket. Two documents are
candidates if they have a key in common. So many copies of one text make many pairs, a
quadratic number of them; `groups_of` doesn't look at each of these.

`ExactJaccard` compares candidates in full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lsh.shingles import Shingles
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray


Similar: TypeAlias = "Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]"
"""Returns float64[p], how similar pairs of documents are, by their rows: int64[p] or int64[1], one
document that is compared with each; and int64[p]."""

_PAIRS = 1 << 16  # at a time
_SMALL = 32  # documents of a bucket of which all pairs are compared for groups


def largest_bucket(keys: NDArray[np.uint64], rows: NDArray[np.int64]) -> int:
    """Return the number of documents in the largest bucket.

    keys: uint64[columns, n]. rows: int64[m], the documents that count.
    """
    return max((int(_Buckets(column, rows).sizes.max(initial=0)) for column in keys), default=0)


def candidate_pairs(
    keys: NDArray[np.uint64], rows: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield all pairs of documents with a key in common, each once, in bounded blocks.

    keys: uint64[columns, n]. rows: int64[m], the documents to pair, ascending.

    Yields pairs of int64[p]: the rows of the earlier and of the later documents.
    """
    for column, own in enumerate(keys):
        for left, right in _Buckets(own, rows).pairs(len(rows)):
            new = _first_met(keys[:column], left, right)
            yield left[new], right[new]


def groups_of(
    keys: NDArray[np.uint64],
    similar: Similar,
    rows: NDArray[np.int64],
    least: float,
) -> NDArray[np.int64]:
    """Return the connected components of the candidates that are similar enough.

    Equal texts are connected without a look. In a large bucket, documents that are connected
    already are not compared with each other; those of different groups all are.

    keys: uint64[columns, n]; the last column has the texts' keys.
    similar: how similar two documents are. It is asked for documents of different texts.
    rows: int64[m], the documents that count, ascending.
    least: the least similarity that connects two documents.

    Returns int64[n], the first document of each one's component.
    """
    labels = np.arange(keys.shape[1])
    labels[rows] = _firsts(keys[-1], rows)
    different = rows[labels[rows] == rows]
    for column, own in enumerate(keys[:-1]):
        buckets = _Buckets(own, different)
        edges = [(buckets.rows[:0], buckets.rows[:0])]
        for left, right in buckets.pairs(_SMALL):
            new = _first_met(keys[:column], left, right) & (labels[left] != labels[right])
            edges.append(_alike(left[new], right[new], similar, least))
        edges += [
            edge
            for members in buckets.larger(_SMALL)
            for edge in _edges_of(members, labels, similar, least)
        ]
        left, right = (np.concatenate(side) for side in zip(*edges, strict=True))
        labels = _merged(labels, left, right)
    return labels


class _Buckets:
    """The buckets of one column: runs of documents with the same key."""

    def __init__(self, keys: NDArray[np.uint64], rows: NDArray[np.int64]) -> None:
        order = np.argsort(keys[rows], kind="stable")
        self.rows = rows[order]
        own = keys[self.rows]
        starts = np.flatnonzero(np.append(True, own[1:] != own[:-1])[: len(own)])
        self.sizes = np.diff(starts, append=len(own))
        self._starts = starts

    def pairs(self, most: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the pairs in all buckets of up to so many documents, in bounded blocks."""
        at = np.arange(len(self.rows)) - np.repeat(self._starts, self.sizes)
        at[np.repeat(self.sizes > most, self.sizes)] = 0
        ends = np.cumsum(at)
        low = 0
        while low < len(at):
            done = ends[low] - at[low]
            high = max(low + 1, int(np.searchsorted(ends, done + _PAIRS, side="right")))
            part = at[low:high]
            later = np.repeat(np.arange(low, high), part)
            back = np.arange(part.sum()) - np.repeat(np.cumsum(part) - part, part) + 1
            if len(later):
                yield self.rows[later - back], self.rows[later]
            low = high

    def larger(self, most: int) -> Iterator[NDArray[np.int64]]:
        """Yield the documents of each bucket of more than so many."""
        for run in np.flatnonzero(self.sizes > most).tolist():
            yield self.rows[self._starts[run] : self._starts[run] + self.sizes[run]]


def _first_met(
    before: NDArray[np.uint64], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which pairs have no key in common in the columns before: bool[p]."""
    met = np.zeros(len(left), np.bool_)
    for keys in before:
        met |= keys[left] == keys[right]
    return ~met


def _firsts(keys: NDArray[np.uint64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[m], for each row the first that has its key."""
    _, first, inverse = np.unique(keys[rows], return_index=True, return_inverse=True)
    return rows[first[inverse]]


def _alike(
    left: NDArray[np.int64], right: NDArray[np.int64], similar: Similar, least: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return those of these pairs that are similar enough."""
    good = similar(left, right) >= least
    return left[good], right[good]


def _edges_of(
    members: NDArray[np.int64], labels: NDArray[np.int64], similar: Similar, least: float
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield enough of the similar pairs in a bucket to connect all that are connected.

    Each document of a group is compared with those that no group has yet.
    """
    left = members
    while len(left):
        group = labels[left] == labels[left[0]]
        reached, left = left[group].tolist(), left[~group]
        while reached and len(left):
            one = reached.pop()
            near = similar(np.array([one]), left) >= least
            found = left[near]
            if len(found):
                yield np.full(len(found), one), found
                of_them = np.isin(labels[left], labels[found])
                reached += left[of_them].tolist()
                left = left[~of_them]


def _merged(
    labels: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return labels that are equal for both ends of each edge; the least one stays."""
    while True:
        one, other = labels[left], labels[right]
        apart = one != other
        if not apart.any():
            return labels
        one, other = one[apart], other[apart]
        labels = labels.copy()
        np.minimum.at(labels, np.maximum(one, other), np.minimum(one, other))
        while (labels[labels] != labels).any():
            labels = labels[labels]


_COMPARED = 256  # pairs at a time
_KEPT = 1 << 23  # hashes: 64 MiB


class ExactJaccard:
    """Compares documents in full. It keeps the shingles of those that it has just seen."""

    def __init__(self, shingles: Callable[[Sequence[int]], Shingles]) -> None:
        """Begin with nothing kept. shingles: returns the shingles of the documents in rows."""
        self._shingles = shingles
        self._sets: dict[int, NDArray[np.uint64]] = {}
        self._kept = 0

    def __call__(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return float64[p], the Jaccard similarity of each row in `left` and that in `right`.

        left: int64[p], or int64[1] for one row that is compared with each. right: int64[p].

        Documents without shingles have similarity 0.
        """
        left = np.broadcast_to(left, right.shape)
        similarity = np.empty(len(right))
        for low in range(0, len(right), _COMPARED):
            part = slice(low, low + _COMPARED)
            pairs = list(zip(left[part].tolist(), right[part].tolist(), strict=True))
            self._fetch({row for pair in pairs for row in pair})
            similarity[part] = [
                _jaccard(self._sets[one], self._sets[other]) for one, other in pairs
            ]
        return similarity

    def _fetch(self, rows: set[int]) -> None:
        """Have the sets of these rows, and drop others if there are too many."""
        if self._kept > _KEPT:
            self._sets, self._kept = {}, 0
        missing = sorted(rows - self._sets.keys())
        sets = self._shingles(missing).distinct()
        parts = np.split(sets.hashes, sets.starts[1:-1]) if missing else []
        self._sets.update(zip(missing, parts, strict=True))
        self._kept += len(sets.hashes)


def _jaccard(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> float:
    """Return the similarity of two sets of hashes, ascending and each once."""
    if len(b) < len(a):
        a, b = b, a
    if not len(a):
        return 0.0
    places = np.minimum(np.searchsorted(b, a), len(b) - 1)
    common = int(np.count_nonzero(b[places] == a))
    return common / (len(a) + len(b) - common)
