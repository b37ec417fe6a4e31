"""The open run: the newest cells, in memory, until there are enough of them for a run.

The cells that a write adds are packed as their slots (1 byte each), their keys (8) and their
documents (4), little-endian.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

import numpy as np
import numpy.typing as npt

from worker.index.run_layout import MARK, SortedCells

__all__ = ["OpenRun", "newest_cells", "pack_open_cells", "unpack_open_cells"]

_SMALLEST_BITS = 8
_FULLEST = 0.6
_MARK = np.uint32(MARK)
_LOW = np.uint32(MARK - 1)
_ONE = np.uint32(1)


class OpenRun:
    """A hash table for each column, by open addressing: a key's first place is its highest bits.

    All tables have the same size and lie in one array, so that one look-up asks all columns. The
    size doubles before a table is too full.
    """

    def __init__(self, columns: int, first: int, bits: int = _SMALLEST_BITS) -> None:
        """Begin empty, with ``1 << bits`` places a column; ``first`` is its first document."""
        self.first = first
        self.bits = bits
        self._columns = columns
        self._counts = np.zeros(columns, np.int64)
        self._hashes = np.zeros(columns << bits, np.uint64)
        # The document's number, counted from 1, with the bit of a mark: 0 is a free place.
        self._documents = np.zeros(columns << bits, np.uint32)

    def __len__(self) -> int:
        """Return how many cells it has."""
        return int(self._counts.sum())

    @property
    def size_bytes(self) -> int:
        """Return the size in memory."""
        return self._hashes.nbytes + self._documents.nbytes

    def find(
        self,
        slots: npt.NDArray[np.uint8],
        hashes: npt.NDArray[np.uint64],
        marks: npt.NDArray[np.bool_],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return which of n cells, or marks, are here, ascending, and their documents: int64[m].

        slots: uint8[n]. hashes: uint64[n], the keys. marks: bool[n], which of them are marks.
        """
        which, places = self._find(slots, hashes, marks)
        order = np.argsort(which)
        documents = (self._documents[places[order]] & ~_MARK).astype(np.int64)
        return which[order], documents + (self.first - 1)

    def _find(
        self,
        slots: npt.NDArray[np.uint8],
        hashes: npt.NDArray[np.uint64],
        marks: npt.NDArray[np.bool_],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return which of n cells, or marks, are here, and their places: int64[m]."""
        places = self._first_places(slots, hashes)
        left = np.flatnonzero(np.take(self._documents, places, mode="clip") != 0)
        found, taken_places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        places = places[left]
        for step in count(1):
            if not len(left):
                break
            same = np.take(self._hashes, places, mode="clip") == hashes[left]
            same &= (np.take(self._documents, places, mode="clip") >= _MARK) == marks[left]
            found.append(left[same])
            taken_places.append(places[same])
            places = self._next_places(places[~same], step)
            left = left[~same]
            taken = self._documents[places] != 0
            places, left = places[taken], left[taken]
        return np.concatenate(found), np.concatenate(taken_places)

    def put(self, cells: SortedCells) -> None:
        """Add cells, or, for those that are here, replace their documents. None is a mark."""
        none = np.zeros(len(cells.slots), np.bool_)
        which, places = self._find(cells.slots, cells.hashes, none)
        self._documents[places] = _shifted(cells.documents[which], -self.first) + _ONE
        new = np.ones(len(cells.hashes), bool)
        new[which] = False
        self.add(cells.take(new))

    def add(self, cells: SortedCells) -> None:
        """Add cells that aren't here yet."""
        counts = self._counts + np.bincount(cells.slots, minlength=self._columns)
        bits = self.bits
        while counts.max(initial=0) > _FULLEST * (1 << bits):
            bits += 1
        if bits > self.bits:
            self._grow(bits)
        self._counts = counts
        self._insert(cells)

    def with_new(self, cells: SortedCells, replacing: SortedCells) -> OpenRun:
        """Return a copy that has more cells: those that `add` takes, and those that `put` takes."""
        made = OpenRun(self._columns, self.first, self.bits)
        made._counts = self._counts
        made._hashes = self._hashes.copy()
        made._documents = self._documents.copy()
        made.add(cells)
        made.put(replacing)
        return made

    def _insert(self, cells: SortedCells) -> None:
        places = self._first_places(cells.slots, cells.hashes)
        hashes = cells.hashes
        documents = _shifted(cells.documents, -self.first) + _ONE
        for step in count(1):
            if not len(places):
                break
            free = self._documents[places] == 0
            # If cells want the same place, the last one gets it; the others go on.
            self._documents[places[free]] = documents[free]
            self._hashes[places[free]] = hashes[free]
            lost = (self._documents[places] != documents) | (self._hashes[places] != hashes)
            places = places[lost]
            hashes, documents = hashes[lost], documents[lost]
            places = self._next_places(places, step)

    def _grow(self, bits: int) -> None:
        cells = SortedCells(*map(np.concatenate, zip(*self.columns(), strict=True)))
        self.bits = bits
        self._hashes = np.zeros(self._columns << bits, np.uint64)
        self._documents = np.zeros(self._columns << bits, np.uint32)
        self._insert(cells)

    def columns(self) -> Iterator[SortedCells]:
        """Return the cells of each column, sorted."""
        for slot in range(self._columns):
            part = slice(slot << self.bits, (slot + 1) << self.bits)
            places = np.flatnonzero(self._documents[part] != 0)
            hashes = self._hashes[part][places]
            # They are nearly sorted, which a stable sort makes use of.
            order = np.argsort(hashes, kind="stable")
            documents = _shifted(self._documents[part][places[order]] - _ONE, self.first)
            yield SortedCells(np.full(len(places), slot, np.uint8), hashes[order], documents)

    def _first_places(
        self, slots: npt.NDArray[np.uint8], hashes: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        places = (hashes >> np.uint64(64 - self.bits)).astype(np.int64)
        places += slots.astype(np.int64) << self.bits
        return places

    def _next_places(self, places: npt.NDArray[np.int64], step: int) -> npt.NDArray[np.int64]:
        """Return the next place of each, within the table of its column.

        Steps that grow by one visit all places of a table whose size is a power of two, and form
        no long rows of taken places.
        """
        last = (1 << self.bits) - 1
        following: npt.NDArray[np.int64] = (places & ~last) | ((places + step) & last)
        return following


def _shifted(documents: npt.NDArray[np.uint32], by: int) -> npt.NDArray[np.uint32]:
    """Return documents with another number in the lowest 31 bits; marks stay marks."""
    shifted: npt.NDArray[np.uint32] = (documents + np.uint32(by % MARK)) & _LOW
    return shifted | (documents & _MARK)


def newest_cells(cells: SortedCells) -> SortedCells:
    """Return the last of cells with the same column, key and kind."""
    marks = cells.documents & _MARK
    ordered = cells.take(np.lexsort((np.arange(len(marks)), marks, cells.hashes, cells.slots)))
    marks = ordered.documents & _MARK
    last = np.ones(len(marks), bool)
    last[:-1] = (ordered.slots[1:] != ordered.slots[:-1]) | (marks[1:] != marks[:-1])
    last[:-1] |= ordered.hashes[1:] != ordered.hashes[:-1]
    return ordered.take(last)


_PACKED = 1 + 8 + 4


def pack_open_cells(*cells: SortedCells) -> bytes:
    """Return the bytes of the cells that a write adds; they need not be sorted."""
    return b"".join(part.tobytes() for parts in zip(*cells, strict=True) for part in parts)


def unpack_open_cells(writes: Iterable[bytes]) -> SortedCells:
    """Return the cells of writes that `pack_open_cells` packed, one write after the other.

    Raises:
        ValueError: those of a write aren't whole.
    """
    slots, hashes, documents = [b""], [b""], [b""]
    for packed in writes:
        cells = len(packed) // _PACKED
        if cells * _PACKED != len(packed):
            raise ValueError(f"{len(packed)} bytes are not whole cells of the open run")
        slots.append(packed[:cells])
        hashes.append(packed[cells : 9 * cells])
        documents.append(packed[9 * cells :])
    return SortedCells(
        np.frombuffer(b"".join(slots), np.uint8),
        np.frombuffer(b"".join(hashes), "<u8"),
        np.frombuffer(b"".join(documents), "<u4"),
    )
