"""Finds sketches by runs of slots: slots that agree with those of another, one behind the other.

Bands are fixed when an index is made. Here the length of a run is chosen with each query: long
runs for what is very similar, shorter ones for what is less so. From each slot on, the next
seven slots are a 64-bit key; the keys of all sketches are sorted, slot by slot. Sketches that
agree in the first r of these lie together, whatever r is: a prefix tree, flattened.

For slots that agree with probability p, the probability u(n) of no run of r among n slots obeys

    u(n) = u(n - 1) - (1 - p) p^r u(n - r - 1),    u(r) = 1 - p^r,    u(n) = 1 for n < r.

New sketches wait, and are then sorted together; two sorted parts of about one size are made one
(the logarithmic method). So an insertion costs O(log^2 n), and a query O(log^2 n), what it finds,
and a byte for each sketch. A sketch that is removed is passed over.

Sources: Bawa, Condie, Ganesan, "LSH forest: self-tuning indexes for similarity search", WWW 2005;
Feller, "An Introduction to Probability Theory and Its Applications", vol. 1, XIII.7 (runs);
Bentley and Saxe, "Decomposable searching problems I", J. Algorithms 1980.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.columns import is_integer, is_number
from lsh.sketch import SKETCH_BITS, require_sketches, similarity

if TYPE_CHECKING:
    from numpy.typing import NDArray


LONGEST_RUN = 7
"""Slots in a key: with the number of the first one, they fill 64 bits."""

_BITS = np.uint64(SKETCH_BITS)
_MOST_TREES = 1 << SKETCH_BITS
_DENSE = 8  # if one sketch in so many has a run, all are compared
_WAITING = 256  # sketches that are not sorted yet, at most
_FEW_REMOVED = 256  # rows without a sketch, however few sketches there are


class Ranked(NamedTuple):
    """Rows of sketches, best first.

    rows: int64[k]. similarity: float64[k], estimated. compared: how many sketches were compared.
    """

    rows: NDArray[np.int64]
    similarity: NDArray[np.float64]
    compared: int


class _Part(NamedTuple):
    """The sorted keys of sketches first to first + size - 1.

    keys: uint64[trees * size], tree by tree. rows: uint32[trees * size], whose keys they are.
    """

    first: int
    size: int
    keys: NDArray[np.uint64]
    rows: NDArray[np.uint32]


class Forest:
    """Sketches, numbered in the order in which they were added: their rows.

    It takes 13 bytes for each slot of each sketch. Slots from the 257th on count in
    similarities, but no run begins there.
    """

    def __init__(self, slots: int) -> None:
        """Begin without sketches.

        slots: the length of a sketch, at least 1.
        """
        if slots < 1:
            raise ValueError(f"slots: got {slots!r}, takes an integer of at least 1")
        self._slots = slots
        self._trees = min(slots, _MOST_TREES)
        self._table = np.empty((16, slots), dtype=np.uint8)
        self._kept = np.empty(16, dtype=np.bool_)
        self._count = 0
        self._removed = 0
        self._parts: list[_Part] = []

    def __len__(self) -> int:
        """Return the number of sketches, without those that were removed."""
        return self._count - self._removed

    @property
    def sketches(self) -> NDArray[np.uint8]:
        """Return all sketches, uint8[n, slots], with those removed. Don't write to them."""
        return self._table[: self._count]

    @property
    def rows(self) -> NDArray[np.int64]:
        """Return the rows of the sketches that weren't removed, int64[n], ascending."""
        return np.flatnonzero(self._kept[: self._count])

    @property
    def sparse(self) -> bool:
        """Return whether so many sketches were removed that `compacted` saves memory."""
        return self._removed > _FEW_REMOVED + len(self)

    def compacted(self) -> Forest:
        """Return a forest of the sketches that weren't removed, in their order."""
        forest = Forest(self._slots)
        forest.add(self._table[self.rows])
        return forest

    def add(self, sketches: NDArray[np.uint8]) -> None:
        """Add sketches, uint8[m, slots]. Raises ValueError for other arrays."""
        require_sketches(sketches, self._slots)
        end = self._count + len(sketches)
        if end > len(self._table):
            room = max(end, 2 * len(self._table))
            table = np.empty((room, self._slots), dtype=np.uint8)
            table[: self._count] = self.sketches
            self._table, self._kept = table, np.resize(self._kept, room)
        self._table[self._count : end] = sketches
        self._kept[self._count : end] = True
        self._count = end

    def remove(self, row: int) -> None:
        """Remove a sketch. The others keep their rows. Raises IndexError if it isn't there."""
        if not 0 <= row < self._count or not self._kept[row]:
            message = f"row: got {row!r}, which has no sketch"
            raise IndexError(message)
        self._kept[row] = False
        self._removed += 1

    def meeting(self, sketch: NDArray[np.uint8], run: int) -> NDArray[np.int64]:
        """Return the rows of the sketches that agree with `sketch` in a run of slots, ascending.

        sketch: uint8[slots]. Its first slot follows its last one.
        run: the number of slots, from 1 to `LONGEST_RUN`; 0 for all rows.

        Up to 256 sketches that were added last are returned in any case.
        """
        if run == 0:
            return self.rows
        self._sort()
        spare = np.uint64((1 << SKETCH_BITS * (LONGEST_RUN - run)) - 1)
        keys = self._keys(sketch[None])[:, 0]
        met = np.zeros(self._count, dtype=np.bool_)
        met[self._sorted :] = True
        for part in self._parts:
            begins = np.searchsorted(part.keys, keys & ~spare)
            lengths = np.searchsorted(part.keys, keys | spare, side="right") - begins
            filled = lengths > 0
            if filled.any():
                met[part.rows[_stretches(begins[filled], lengths[filled])]] = True
        return np.flatnonzero(met & self._kept[: self._count])

    def nearest(
        self, sketch: NDArray[np.uint8], k: int, *, recall: float = 0.98, least: float = 0.0
    ) -> Ranked:
        """Return the k sketches that are estimated as most similar, or all if there are fewer.

        recall: the search stops at runs that a sketch as similar as the k-th has with this
            probability; at 1.0, all sketches are compared.
        least: what is less similar isn't looked for, and isn't returned.

        Equally similar sketches are in the order of their rows.

        Raises ValueError if a number is out of range.
        """
        if not is_integer(k) or k < 0:
            raise ValueError(f"k: got {k!r}, takes an integer of at least 0")
        for name, value in (("recall", recall), ("least", least)):
            if not is_number(value) or not 0 <= value <= 1:
                raise ValueError(f"{name}: got {value!r}, takes a number from 0 to 1")
        require_sketches(sketch[None], self._slots)
        found = Ranked(np.empty(0, np.int64), np.empty(0), 0)
        for run in (*range(LONGEST_RUN, 1, -1), 0):
            rows = self.meeting(sketch, run)
            if _DENSE * len(rows) > len(self):
                # As fast as picking these, and nothing is missed.
                run, rows = 0, self.rows  # noqa: PLW2901 -- the last one
            table = self._table[rows] if run or self._removed else self.sketches
            found = _best(rows, similarity(sketch, table), k)
            wanted = found.similarity[-1] if k and len(found.rows) == k else 0.0
            if run_chance(max(float(wanted), least), self._slots, run) >= recall:
                break
        enough = found.similarity >= least
        return Ranked(found.rows[enough], found.similarity[enough], found.compared)

    @property
    def _sorted(self) -> int:
        """Return how many sketches are in sorted parts."""
        return self._parts[-1].first + self._parts[-1].size if self._parts else 0

    def _sort(self) -> None:
        """Sort what waits, together with parts that aren't larger."""
        if self._count - self._sorted <= _WAITING:
            return
        first = self._sorted
        while self._parts and self._parts[-1].size <= self._count - first:
            first = self._parts.pop().first
        keys = self._keys(self._table[first : self._count])
        rows = np.empty(keys.shape, dtype=np.uint32)
        for tree, column in enumerate(keys):
            order = np.argsort(column)
            keys[tree], rows[tree] = column[order], order + first
        part = _Part(first, self._count - first, keys.reshape(-1), rows.reshape(-1))
        self._parts.append(part)

    def _keys(self, sketches: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """Return uint64[trees, m]: the number of a slot, and the slots from there on."""
        keys = np.empty((self._trees, len(sketches)), dtype=np.uint64)
        keys[:] = np.arange(self._trees, dtype=np.uint64)[:, None]
        for place in range(LONGEST_RUN):
            keys <<= _BITS
            keys |= sketches[:, (np.arange(self._trees) + place) % self._slots].T
        return keys


def _best(rows: NDArray[np.int64], alike: NDArray[np.float64], k: int) -> Ranked:
    order = np.argsort(-alike, kind="stable")[:k]
    return Ranked(rows[order], alike[order], len(rows))


def run_for(similarity: float, slots: int, recall: float) -> int:
    """Return the longest run that sketches of a similarity have with probability `recall`.

    It is 0 if even a single slot agrees too seldom.
    """
    runs = range(LONGEST_RUN, 0, -1)
    return next((run for run in runs if run_chance(similarity, slots, run) >= recall), 0)


@lru_cache(maxsize=1 << 14)
def run_chance(similarity: float, slots: int, run: int) -> float:
    """Return the probability that two sketches agree in a run of slots.

    similarity: their Jaccard similarity. slots: their length. run: the length of the run.

    Slots are taken as independent. Runs across the end of a sketch are left out, so for up to
    256 slots the true probability is a little higher.
    """
    chance = 2.0**-SKETCH_BITS
    agree = similarity + (1.0 - similarity) * chance
    length = min(slots, _MOST_TREES + run - 1)
    none = [1.0] * run + [1.0 - agree**run]
    for number in range(run + 1, length + 1):
        none.append(none[-1] - (1.0 - agree) * agree**run * none[number - run - 1])
    return 1.0 - none[length]


def _stretches(begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all positions from begins[i], lengths[i] of them, for every i: int64.

    begins, lengths: int64[m], m at least 1; each length is at least 1.
    """
    # One step at a time within a stretch. This takes half the time of numpy.repeat.
    steps = np.ones(int(lengths.sum()), dtype=np.int64)
    steps[0] = begins[0]
    steps[np.cumsum(lengths[:-1])] = begins[1:] - begins[:-1] - lengths[:-1] + 1
    return np.cumsum(steps, out=steps)
