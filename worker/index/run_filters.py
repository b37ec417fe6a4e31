"""Filters that rule out runs without reading their pages.

On a feed of mostly new documents, nearly every look-up is of an absent bucket. Each run has a Bloom
filter, which stays in memory. Those of a tier are interleaved word by word, so that one memory
access asks up to eight runs.
"""

from __future__ import annotations

import mmap
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from worker.index.run_layout import FAN_IN, RunShape

__all__ = ["Joined", "Probes", "TierFilters", "mixed", "zeroed"]

_HALF = np.uint64(32)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_WIDEST = (FAN_IN, FAN_IN // 2)
"""The most filters that are interleaved, by tier; above, none are. A matrix has a power of two of
columns, so one for eight may have room for three filters that nothing uses, and it is copied when
it gets more. Those of higher tiers are large."""
_HUGE_BYTES = 1 << 21


def zeroed(words: int) -> npt.NDArray[np.uint64]:
    """Return zeros that go back to the system as soon as they are released.

    malloc might take them from the heap of the thread that opens a store, and keep it.
    """
    pages = mmap.mmap(-1, max(1, words) * 8, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE") and words * 8 >= _HUGE_BYTES:
        with suppress(OSError):  # The kernel may lack huge pages; look-ups are then a bit slower.
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint64, words)


class Probes:
    """n cells to look up.

    A cell has four bits in each of two words. Only what has those of the first word is looked up
    in the second, so nearly every look-up is one memory access (compare Putze, Sanders, Singler,
    "Cache-, hash- and space-efficient Bloom filters", WEA 2007). The highest bits of a key choose
    the first word. The second is among those of the same page.
    """

    def __init__(self, slots: npt.NDArray[np.uint8], hashes: npt.NDArray[np.uint64]) -> None:
        """Take the columns' slots, uint8[n], and the keys, uint64[n]."""
        self._slots = slots.astype(np.int64)
        self._hashes = hashes
        self._high = hashes >> _HALF
        self.bits = _four_bits(hashes)

    def words(self, shape: RunShape) -> npt.NDArray[np.int64]:
        """Return the first word of each cell in the filter of a run of this shape."""
        within = (self._high * np.uint64(shape.words)) >> _HALF
        return self._slots * shape.words + within.astype(np.int64)

    def second(
        self, shape: RunShape, which: npt.NDArray[np.int64] | slice
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """Return the second words of some of the cells, and their bits there."""
        hashes = self._hashes[which]
        numbers = mixed(hashes)
        within = ((numbers * np.uint64(shape.page_words)) >> _HALF).astype(np.int64)
        pages = self._slots[which] * shape.pages + shape.page(hashes)
        return pages * shape.page_words + within, _four_bits(numbers)


def mixed(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the numbers that choose the second words of keys, and the bits in these: uint64[n].

    They have 32 bits.
    """
    numbers = hashes * _MIX
    numbers >>= _HALF
    return numbers


def _four_bits(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return words with the bits set that the lowest 24 bits of each number choose."""
    one, last = np.uint64(1), np.uint64(63)
    bits: npt.NDArray[np.uint64] = one << (numbers & last)
    for shift in (6, 12, 18):
        bits |= one << (numbers >> np.uint64(shift) & last)
    return bits


class _Group:
    """The filters of some runs as the columns of a matrix. A column of run -1 is free."""

    def __init__(self, matrix: npt.NDArray[np.uint64], runs: npt.NDArray[np.int64]) -> None:
        self._matrix = matrix
        self.runs = runs

    @property
    def width(self) -> int:
        return len(self.runs)

    @property
    def size_bytes(self) -> int:
        return self._matrix.nbytes

    def find(
        self, probes: Probes, words: npt.NDArray[np.int64], shape: RunShape
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return which cells may be in which runs. ``words`` are the first word of each."""
        which, columns = self._with_first(words, probes.bits)
        if not len(which):  # As for most of the few buckets of a query.
            return which, which
        places, bits = probes.second(shape, which)
        runs = self.runs[columns]
        found = (self._matrix[places, columns] & bits) == bits
        found &= runs >= 0
        return which[found], runs[found]

    def _with_first(
        self, places: npt.NDArray[np.int64], bits: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return which cells have their bits in the first word of which columns."""
        # numpy.take is several times as fast as an index, and fastest if it needn't refuse any.
        if self.width == 1:
            words = np.take(self._matrix.reshape(-1), places, mode="clip")
            which = np.flatnonzero((words & bits) == bits)
            return which, np.zeros(len(which), np.int64)
        wanted = bits[:, None]
        words = np.take(self._matrix, places, axis=0, mode="clip")
        np.bitwise_and(words, wanted, out=words)
        have = words == wanted
        # Nearly all rows have none: they are skipped as one number each.
        some = np.flatnonzero(have.view(f"u{self.width}"))
        which, columns = np.nonzero(have[some])
        return some[which], columns

    def has_room(self, widest: int) -> bool:
        """Return whether it has a free column, or may get more of them."""
        return self.width < widest or bool((self.runs < 0).any())

    def joined(self, single: _Group) -> _Group:
        """Return a group that has the filter of another, too; whoever asks this one may go on."""
        matrix, runs = self._matrix, self.runs.copy()
        if not (runs < 0).any():
            matrix, runs = self._widened()
        free = np.flatnonzero(runs < 0)[0]
        matrix[:, free] = single._matrix[:, 0]
        runs[free] = single.runs[0]
        return _Group(matrix, runs)

    def _widened(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        rows, width = self._matrix.shape
        wider = zeroed(rows * width * 2).reshape(rows, 2 * width)
        wider[:, :width] = self._matrix
        return wider, np.concatenate((self.runs, np.full(width, -1)))


Groups = list[_Group]
Joined = list[Groups]
"""What filters are to be asked, by tier."""


class TierFilters:
    """The filters of the runs of one tier.

    A new run's filter is asked by itself until it is interleaved with others, because that takes
    long: `joined` does it beside those who ask, and `take` has it count.
    """

    def __init__(self, shape: RunShape, tier: int) -> None:
        """Begin without runs."""
        self.shape = shape
        self._widest = _WIDEST[tier] if tier < len(_WIDEST) else 1
        self._groups: list[_Group] = []

    @property
    def size_bytes(self) -> int:
        """Return the size in memory."""
        return sum(group.size_bytes for group in self._groups)

    @property
    def matrices(self) -> int:
        """Return how many there are: each is asked by itself."""
        return len(self._groups)

    def add(self, run: int, words: npt.NDArray[np.uint64]) -> None:
        """Add a run's filter, uint64[words]. It is kept, so it must not change."""
        self._groups.append(_Group(words.reshape(-1, 1), np.array([run], np.int64)))

    def joined(self) -> Groups:
        """Return what `take` takes: filters that are by themselves are interleaved with others.

        Changes nothing for those who ask meanwhile. No run may be added or removed until `take`.
        """
        groups: Groups = []
        for group in self._groups:
            hosts = [place for place, one in enumerate(groups) if one.has_room(self._widest)]
            if group.width == 1 and hosts:
                groups[hosts[0]] = groups[hosts[0]].joined(group)
            else:
                groups.append(group)
        return groups

    def take(self, joined: Groups) -> None:
        """Ask what `joined` has returned from now on."""
        self._groups = joined

    def remove(self, runs: npt.NDArray[np.int64]) -> None:
        """Remove runs; memory is released once no run of a matrix is left."""
        for group in self._groups:
            group.runs[np.isin(group.runs, runs)] = -1
        self._groups = [group for group in self._groups if (group.runs >= 0).any()]

    def find(self, probes: Probes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return which cells may be in which runs: two arrays, int64[m]. All others are not."""
        if not self._groups:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        words = probes.words(self.shape)
        found = [group.find(probes, words, self.shape) for group in self._groups]
        return np.concatenate([which for which, _ in found]), np.concatenate(
            [runs for _, runs in found]
        )
