"""The spread of the similarities of a sample's pairs, and what an index would make of it.

A choice of bands and rows is cheap or dear, right or wrong, for a collection: it depends on how
many pairs have which similarity. Pairs at or above a floor are all found (`lsh.exact`). Those
below, nearly all pairs, are drawn: each one that is drawn stands for many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lsh.exact import copies, jaccard, join
from lsh.mixing import finalise
from lsh.tuning import candidate_chance, detection

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lsh.exact import ShingleSets


_DRAWN = 200_000
_GRID = 1000  # steps of a curve between which it is taken as straight


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The similarities of n documents.

    documents: n, without empty ones.
    nearest: float64[m], for each document that has an earlier one at or above `floor`, the
        similarity to the nearest one.
    similarity, weight: float64[p], similarities of pairs, and how many pairs each stands for.
        Of documents with equal sets of shingles, an index keeps the first; so a pair here is
        a document and an earlier one that is the first of its kind.
    floor: the similarity from which on all pairs are in it.
    """

    documents: int
    nearest: NDArray[np.float64]
    similarity: NDArray[np.float64]
    weight: NDArray[np.float64]
    floor: float

    def candidates(self, bands: int, rows: int) -> float:
        """Return how many comparisons an index is expected to make for a document, on average.

        This is without the limits of buckets, and with nothing absorbed but equal sets.
        """
        met = candidate_chance(self.similarity, bands, rows)
        return float(met @ self.weight) / max(self.documents, 1)

    def published(self, least: float, threshold: float, slots: int, bands: int, rows: int) -> float:
        """Return how many pairs at or above a similarity an index is expected to publish.

        The conditions are those of `candidates`.
        """
        at = self.similarity >= least
        return float(
            _detected(self.similarity[at], threshold, slots, bands, rows) @ self.weight[at]
        )

    def found(
        self, least: float, threshold: float, slots: int, bands: int, rows: int
    ) -> tuple[int, float]:
        """Return how many documents have an earlier one at or above a similarity, and are found.

        least: this similarity, at least `floor`.

        The second number is expected: it takes each document to be found by its nearest one.
        """
        near = self.nearest[self.nearest >= least]
        return len(near), float(_detected(near, threshold, slots, bands, rows).sum())


def _detected(
    similarity: NDArray[np.float64], threshold: float, slots: int, bands: int, rows: int
) -> NDArray[np.float64]:
    """Return `detection` of many similarities."""
    grid = np.linspace(0, 1, _GRID + 1)
    curve = detection(grid, threshold, slots, bands, rows)
    return np.interp(similarity, grid, curve)


def spectrum(
    sets: ShingleSets, floor: float, progress: Callable[[float], None] | None = None
) -> Spectrum:
    """Return the spectrum of documents in their order.

    progress: called with the share that is done, in [0, 1].
    """
    own = np.arange(len(sets.sizes))
    firsts = copies(sets)
    filled = sets.sizes > 0
    kinds = np.flatnonzero(filled & (firsts == own))
    families = _Families(firsts)
    nearest = np.where(firsts < own, 1.0, 0.0)
    similarity = [np.ones(1)]
    weight = [np.array([filled.sum() - len(kinds)], np.float64)]  # Copies meet the first of them.
    above = 0
    for block in join(sets, floor):
        np.maximum.at(nearest, block.right, block.similarity)
        similarity.append(block.similarity)
        weight.append(families.meetings(block.left, block.right))
        above += len(block.left)
        if progress is not None:
            progress(block.done)
    left, right = _drawn(kinds)
    drawn = jaccard(sets, left, right)
    low = drawn < floor
    below = len(kinds) * (len(kinds) - 1) / 2 - above
    share = families.meetings(left[low], right[low])
    similarity.append(drawn[low])
    weight.append(share * (below / max(int(low.sum()), 1)))
    return Spectrum(
        int(filled.sum()),
        nearest[nearest >= floor],
        np.concatenate(similarity),
        np.concatenate(weight),
        floor,
    )


class _Families:
    """Documents with equal sets, by the first of them."""

    def __init__(self, firsts: NDArray[np.int64]) -> None:
        self._count = len(firsts)
        self._members = np.sort(firsts * self._count + np.arange(self._count))

    def meetings(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how many documents of either family come after the first of the other.

        left, right: int64[m], the first ones, left < right.
        """
        ends = np.searchsorted(self._members, (left + 1) * self._count)
        after = ends - np.searchsorted(self._members, left * self._count + right)
        begins = np.searchsorted(self._members, right * self._count)
        every = np.searchsorted(self._members, (right + 1) * self._count) - begins
        return np.asarray(after + every, dtype=np.float64)


def _drawn(kinds: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of different documents, the same ones for the same number of documents."""
    count = len(kinds)
    if count < 2:  # noqa: PLR2004 -- a pair
        return kinds[:0], kinds[:0]
    words = finalise(np.arange(1, 2 * _DRAWN + 1, dtype=np.uint64))
    one = (words[:_DRAWN] % np.uint64(count)).astype(np.int64)
    other = (words[_DRAWN:] % np.uint64(count - 1)).astype(np.int64)
    other += other >= one
    return kinds[np.minimum(one, other)], kinds[np.maximum(one, other)]
