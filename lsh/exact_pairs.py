"""Exact Jaccard similarities of pairs of documents whose texts are at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lsh.shingles import Shingles

__all__ = ["ExactJaccard"]

_PAIRS = 256  # at a time
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
        for low in range(0, len(right), _PAIRS):
            part = slice(low, low + _PAIRS)
            pairs = list(zip(left[part].tolist(), right[part].tolist(), strict=True))
            self._fetch({row for pair in pairs for row in pair})
            similarity[part] = [
                _jaccard(self._sets[one], self._sets[other]) for one, other in pairs
            ]
        return similarity

    def _fetch(self, rows: set[int]) -> None:
        """Have the sets of these rows, and forget others if there are too many."""
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
