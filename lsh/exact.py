"""Exact Jaccard similarities: of given pairs, and of all pairs that reach a threshold.

Estimates are judged by these. `nearest_earlier` says of each document of a collection how near an
earlier one is. Shingles are compared by their 64-bit hashes: among ten
million different shingles, two have one hash with a probability of 3 in a million.

`join` compares few of all pairs and stays exact. Let shingles be ordered from rare to common,
and let A and B have n >= m shingles and a Jaccard similarity of t or more. Then they have

    o >= t n  and  o >= 2t / (1 + t) m

shingles in common, because |A and B| >= t |A or B| >= t n, and because
|A and B| = J / (1 + J) (n + m) >= t / (1 + t) 2m. If a set must share o of its n shingles, all
but o - k of its shingles include the first k of the shared ones. So the first n - tn + k
shingles of A and the first m - 2tm / (1 + t) + k of B have k shingles in common. Only sets
with that many are compared in full. Besides, m >= t n.

Source: Chaudhuri, Ganti, Kaushik, "A primitive operator for similarity joins in data cleaning",
ICDE 2006; Xiao, Wang, Lin, Yu, "Efficient similarity joins for near duplicate detection",
WWW 2008 (PPJoin: sets in the order of their sizes, and the shorter prefix of the smaller).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.arrays import first_of_each, without_repeats
from lsh.mixing import finalise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from lsh.shingles import Shingles

_BUDGET = 1 << 21  # elements at a time: bounds the memory of a step
_PARTS = 16  # of the hashes' range, ranked one after the other
_SHARED = 16  # k in the description above
_DENSE = 4  # cells of a table of counts for each number counted; above that, numbers are sorted
_SLACK = 1e-6  # t * n in floating point may be a little above the integer that it is


@dataclass(frozen=True, slots=True)
class ShingleSets:
    """The sets of shingles of n documents.

    tokens: uint32[total], the shingles of each set, numbered from rare to common, ascending.
    starts: int64[n + 1], where each set begins, then `total`. A set may be empty.
    distinct: how many different shingles there are in all sets.
    """

    tokens: NDArray[np.uint32]
    starts: NDArray[np.int64]
    distinct: int

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return int64[n], the number of shingles in each set."""
        return np.diff(self.starts)


class PairBlock(NamedTuple):
    """Some of the pairs that a join finds.

    left, right: int64[m], two documents each, left < right.
    similarity: float64[m], their Jaccard similarity.
    done: the share of the join's sets that have been compared with all smaller ones, in [0, 1].
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    similarity: NDArray[np.float64]
    done: float


def shingle_sets(hashes: NDArray[np.uint64], starts: NDArray[np.int64]) -> ShingleSets:
    """Return the sets of n documents from the hashes of their shingles.

    hashes: uint64[total], document by document, with or without repeats.
    starts: int64[n + 1], where each document begins, then `total`.

    It needs some 12 bytes a shingle, and 4 bytes afterwards.
    """
    tokens, distinct = _ranked(hashes)
    sizes = np.zeros(len(starts) - 1, dtype=np.int64)
    kept = [tokens[:0]]
    for low, high in _runs(starts, _BUDGET):
        base, end = starts[low], starts[high]
        rows = np.repeat(np.arange(high - low, dtype=np.uint64), np.diff(starts[low : high + 1]))
        ordered = without_repeats(rows << np.uint64(32) | tokens[base:end])
        kept.append(ordered.astype(np.uint32))
        sizes[low:high] = np.bincount(
            (ordered >> np.uint64(32)).view(np.int64), minlength=high - low
        )
    return ShingleSets(np.concatenate(kept), _edges(sizes), distinct)


def _ranked(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], int]:
    """Return uint32[total], the rank of each hash from rare to common, and how many there are."""
    tokens = np.empty(len(hashes), dtype=np.uint32)
    counts = []
    first = 0
    for part in range(_PARTS):
        places = np.flatnonzero(hashes >> np.uint64(60) == part)
        values, inverse, count = np.unique(hashes[places], return_inverse=True, return_counts=True)
        tokens[places] = inverse + first
        counts.append(count)
        first += len(values)
    ranks = np.empty(first, dtype=np.uint32)
    ranks[np.argsort(np.concatenate(counts), kind="stable")] = np.arange(first, dtype=np.uint32)
    for low in range(0, len(tokens), _BUDGET):
        tokens[low : low + _BUDGET] = ranks[tokens[low : low + _BUDGET]]
    return tokens, first


def copies(sets: ShingleSets) -> NDArray[np.int64]:
    """Return int64[n], for each document the first one with the same set; itself if empty.

    Sets are compared by a 64-bit hash.
    """
    content = finalise(sets.sizes.astype(np.uint64))
    for low, high in _runs(sets.starts, _BUDGET):
        base, end = sets.starts[low], sets.starts[high]
        mixed = finalise(sets.tokens[base:end].astype(np.uint64) + np.uint64(1))
        sums = np.append(np.uint64(0), np.cumsum(mixed, dtype=np.uint64))
        content[low:high] += np.diff(sums[sets.starts[low : high + 1] - base])
    _, firsts, inverse = np.unique(content, return_index=True, return_inverse=True)
    own = np.arange(len(content), dtype=np.int64)
    return np.where(sets.sizes > 0, firsts[inverse], own)


def jaccard(
    sets: ShingleSets, left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return float64[m], the Jaccard similarity of each document in `left` with that in `right`.

    left, right: int64[m], numbers of documents. Two empty sets have similarity 0.
    """
    common = np.zeros(len(left), dtype=np.int64)
    sizes, marked = sets.sizes, np.zeros(sets.distinct, dtype=np.bool_)
    order = np.argsort(left, kind="stable")
    edges = np.append(np.flatnonzero(first_of_each(left[order])), len(order))
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        pairs = order[begin:end]
        common[pairs] = _common(sets, int(left[pairs[0]]), right[pairs], marked)
    union = sizes[left] + sizes[right] - common
    similarity: NDArray[np.float64] = common / np.maximum(union, 1)
    return similarity


def join(sets: ShingleSets, threshold: float) -> Iterator[PairBlock]:
    """Yield all pairs of documents whose similarity is at or above a threshold.

    Of documents with equal sets, only the first takes part; `copies` has the others. So copies
    cost nothing, however many there are.

    threshold: Jaccard similarity in (0, 1]; lower ones take longer.

    It needs some 16 bytes a shingle, and bounded memory for each step.
    """
    firsts = np.flatnonzero((copies(sets) == np.arange(len(sets.sizes))) & (sets.sizes > 0))
    order = firsts[np.argsort(sets.sizes[firsts], kind="stable")]
    search = _Search(sets, order, threshold)
    marked = np.zeros(sets.distinct, dtype=np.bool_)
    for low, high in search.blocks():
        found = [
            _verified(sets, order, probe, smaller, threshold, marked)
            for probe, smaller in search.candidates(low, high)
        ]
        one = np.concatenate(
            [np.full(len(which), probe) for probe, which, _ in found] or [order[:0]]
        )
        other = np.concatenate([which for _, which, _ in found] or [order[:0]])
        similarity = np.concatenate([alike for _, _, alike in found] or [np.empty(0)])
        yield PairBlock(
            np.minimum(one, other), np.maximum(one, other), similarity, high / len(order)
        )


def _verified(  # noqa: PLR0913, PLR0917 -- the state of one join
    sets: ShingleSets,
    order: NDArray[np.int64],
    probe: int,
    smaller: NDArray[np.int64],
    threshold: float,
    marked: NDArray[np.bool_],
) -> tuple[int, NDArray[np.int64], NDArray[np.float64]]:
    """Return a document, and those of its candidates that reach the threshold."""
    document, others = int(order[probe]), order[smaller]
    common = _common(sets, document, others, marked)
    sizes = sets.sizes
    similarity = common / (sizes[document] + sizes[others] - common)
    good = similarity >= threshold
    return document, others[good], similarity[good]


def _common(
    sets: ShingleSets, document: int, others: NDArray[np.int64], marked: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return int64[m], how many shingles a document has in common with each of others.

    marked: bool[distinct], all False, before and after.
    """
    own = sets.tokens[sets.starts[document] : sets.starts[document + 1]]
    marked[own] = True
    common = np.zeros(len(others), dtype=np.int64)
    begins, ends = sets.starts[others], sets.starts[others + 1]
    edges = _edges(ends - begins)
    for low, high in _runs(edges, _BUDGET):
        shared = marked[sets.tokens[_spans(begins[low:high], ends[low:high])]]
        sums = np.append(0, np.cumsum(shared, dtype=np.int64))
        common[low:high] = np.diff(sums[edges[low : high + 1] - edges[low]])
    marked[own] = False
    return common


class _Search:
    """Finds candidates by prefixes. Sets are named by their places in the order of sizes."""

    def __init__(self, sets: ShingleSets, order: NDArray[np.int64], threshold: float) -> None:
        sizes = sets.sizes[order]
        self._count = len(order)
        self._starts, self._tokens = sets.starts[order], sets.tokens
        least = np.maximum(np.ceil(threshold * sizes - _SLACK).astype(np.int64), 1)
        self._shared = np.minimum(least, _SHARED)
        self._probed = sizes - least + self._shared
        # The first set of each size that is large enough to be compared.
        self._nearest = np.searchsorted(sizes, least)
        factor = 2 * threshold / (1 + threshold)
        least = np.maximum(np.ceil(factor * sizes - _SLACK).astype(np.int64), 1)
        self._kept = np.minimum(least, _SHARED)
        kept = sizes - least + self._kept
        # Postings: the sets that have a shingle in their prefix, shingle by shingle.
        rows = np.repeat(np.arange(self._count, dtype=np.int64), kept)
        tokens = sets.tokens[_spans(self._starts, self._starts + kept)]
        self._keys = np.sort(tokens.astype(np.int64) * self._count + rows)

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of sets whose prefixes have a bounded number of shingles."""
        return _runs(_edges(self._probed), _BUDGET // 8)

    def candidates(self, low: int, high: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield each set in a range that has candidates among the smaller ones, with these."""
        probed = self._probed[low:high]
        rows = np.repeat(np.arange(low, high, dtype=np.int64), probed)
        tokens = self._tokens[_spans(self._starts[low:high], self._starts[low:high] + probed)]
        wanted = tokens.astype(np.int64) * self._count
        begins = np.searchsorted(self._keys, wanted + self._nearest[rows])
        ends = np.maximum(np.searchsorted(self._keys, wanted + rows), begins)
        lengths, edges = _edges(ends - begins), _edges(probed)
        for first, last in _runs(lengths[edges], _BUDGET):
            part = slice(edges[first], edges[last])
            yield from self._counted(
                low + first, low + last, rows[part], wanted[part], begins[part], ends[part]
            )

    def _counted(  # noqa: PLR0913, PLR0917 -- the columns of one table
        self,
        low: int,
        high: int,
        rows: NDArray[np.int64],
        wanted: NDArray[np.int64],
        begins: NDArray[np.int64],
        ends: NDArray[np.int64],
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Count for sets low to high how many shingles of their prefixes others share."""
        base, width = int(self._nearest[low]), high - int(self._nearest[low])
        lengths = _edges(ends - begins)
        cells = (high - low) * width

        def met() -> Iterator[NDArray[np.int64]]:
            for first, last in _runs(lengths, _BUDGET):
                part = slice(first, last)
                shift = (rows[part] - low) * width - wanted[part] - base
                postings = self._keys[_spans(begins[part], ends[part])]
                yield postings + np.repeat(shift, ends[part] - begins[part])

        if high == low + 1 or cells <= _DENSE * int(lengths[-1]):
            table = np.zeros(cells, dtype=np.int64)
            for numbers in met():
                table += np.bincount(numbers, minlength=cells)
            places = np.flatnonzero(table)
            counts = table[places]
        else:
            places, counts = np.unique(np.concatenate([*met()]), return_counts=True)
        probes, others = places // width, places % width + base
        enough = counts >= np.minimum(self._shared[low + probes], self._kept[others])
        probes, others = probes[enough], others[enough]
        edges = np.searchsorted(probes, np.arange(high - low + 1))
        for row in np.flatnonzero(np.diff(edges)).tolist():
            yield low + row, others[edges[row] : edges[row + 1]]


def _edges(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[n + 1], where each of n runs begins, then the sum of their lengths."""
    edges = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=edges[1:])
    return edges


def _spans(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers begins[0] to ends[0] - 1, begins[1] to ends[1] - 1, and so on."""
    edges = _edges(ends - begins)
    return np.arange(edges[-1]) + np.repeat(begins - edges[:-1], ends - begins)


def _runs(edges: NDArray[np.int64], budget: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of items, each with at most `budget` elements, or one item.

    edges: int64[n + 1], where the elements of each item begin.
    """
    low, count = 0, len(edges) - 1
    while low < count:
        high = int(np.searchsorted(edges, edges[low] + budget, side="right")) - 1
        high = min(max(high, low + 1), count)
        yield low, high
        low = high


@dataclass(frozen=True, slots=True)
class Nearest:
    """The most similar earlier document of each of n documents.

    similarity: float64[n], the exact Jaccard similarity to it; 0 below `floor`.
    document: int64[n], its number, the least of equally similar ones; -1 if there is none.
    floor: the similarity below which nothing is known.
    containment: float64[n], the largest share of it that an earlier one has; only of those that are
        similar enough, and no longer than `nearest_earlier` was told.
    """

    similarity: NDArray[np.float64]
    document: NDArray[np.int64]
    floor: float
    containment: NDArray[np.float64]


def nearest_earlier(
    sets: ShingleSets,
    floor: float,
    progress: Callable[[float], None] | None = None,
    *,
    ratio: float = np.inf,
) -> Nearest:
    """Return the most similar earlier document of each, if it has one at or above `floor`.

    progress: called with the share that is done, in [0, 1].
    ratio: for the containment, how many times as many shingles the earlier one may have.
    """
    count = len(sets.sizes)
    firsts = copies(sets)
    copied = firsts < np.arange(count)
    similarity = np.where(copied, 1.0, 0.0)
    document = np.where(copied, firsts, -1)
    containment = similarity.copy()
    for block in join(sets, floor):
        # Best first, then earliest: of equal documents on the right, unique takes the first.
        order = np.lexsort((block.left, -block.similarity, block.right))
        later, at = np.unique(block.right[order], return_index=True)
        best, earlier = block.similarity[order][at], block.left[order][at]
        better = (best > similarity[later]) | (
            (best == similarity[later]) & (earlier < document[later])
        )
        similarity[later[better]] = best[better]
        document[later[better]] = earlier[better]
        near = sets.sizes[block.left] <= ratio * sets.sizes[block.right]
        shares = contained(sets, block.right, block.left, block.similarity)
        np.maximum.at(containment, block.right[near], shares[near])
        if progress is not None:
            progress(block.done)
    return Nearest(similarity, document, floor, containment)


def contained(
    sets: ShingleSets,
    one: NDArray[np.int64],
    other: NDArray[np.int64],
    similarity: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return how much of each document is in another, in [0, 1]: float64[m].

    one, other: int64[m], the documents. similarity: float64[m], the exact ones of the pairs.
    """
    both = sets.sizes[one] + sets.sizes[other]
    common = np.rint(similarity / (1.0 + similarity) * both)
    return np.asarray(common / np.maximum(sets.sizes[one], 1))


class SetsOfTexts:
    """Collects the shingles of texts, batch by batch, each text's once."""

    def __init__(self) -> None:
        """Start without a text."""
        self._parts: list[NDArray[np.uint64]] = []

    def add(self, shingles: Shingles) -> None:
        """Add the texts of a batch. A text may have no shingle."""
        edges = shingles.starts.tolist()
        for low, high in pairwise(edges):
            self._parts.append(without_repeats(shingles.hashes[low:high]))

    def finish(self) -> ShingleSets:
        """Return the sets of all texts, in their order, and forget them."""
        starts = np.append(0, np.cumsum([len(part) for part in self._parts], dtype=np.int64))
        hashes = np.empty(int(starts[-1]), dtype=np.uint64)
        end = len(hashes)
        while self._parts:  # From the end, so that each part's memory is free once it is copied.
            part = self._parts.pop()
            hashes[end - len(part) : end] = part
            end -= len(part)
        return shingle_sets(hashes, starts)
