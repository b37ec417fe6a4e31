"""The truth about each document of a collection: how near an earlier one is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lsh.arrays import without_repeats
from lsh.exact import copies, join, shingle_sets

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lsh.exact import ShingleSets
    from lsh.shingles import Shingles


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
