"""The layout of runs: their pages of cells, and how large the filters are.

A run holds the cells of successive documents, which are sorted by column and key. A page has the
cells of one column whose keys have the same highest bits, about 256: first all keys (8 bytes
each), then the lowest 31 bits of the number of each one's document (4 bytes). Numbers are
little-endian. Cells are of two
kinds: those of buckets, and marks, whose key is that of a bucket that has grown, changed by
`marked`.

Runs have tiers. A run of a tier has eight times the documents of one of the tier below, and eight
times the pages.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lsh.index.layout import MOST_DOCUMENTS

__all__ = [
    "FAN_IN",
    "FILTER_BITS",
    "MARK",
    "RunShape",
    "SortedCells",
    "find_in_page",
    "marked",
    "packed_pages",
    "unpack_cells",
    "unpack_pages",
]

MARK = MOST_DOCUMENTS
"""The bit of a document that makes a cell a mark: its bucket has grown."""
FAN_IN = 8
"""Runs of one tier that are merged into one of the next."""
_FAN_IN_BITS = 3
_CELLS_A_PAGE = 256
_CELL_BYTES = 12
_MARKED = np.uint64(0x9E3779B97F4A7C15)
FILTER_BITS = (24, 18, 12)
"""Bits of a new store's filters for each cell, by tier; those of the last for all tiers above.
Young runs are asked by every look-up and are small; the oldest are the bulk. With 12 bits, 1 of 205
absent cells passes; with 13, 1 of 298."""


class SortedCells(NamedTuple):
    """n cells, sorted by column and key.

    slots: uint8[n], the places of the columns among those of the store. hashes: uint64[n], the
    keys. documents: uint32[n], the lowest 31 bits of their numbers, with `MARK` set in those of
    marks.
    """

    slots: npt.NDArray[np.uint8]
    hashes: npt.NDArray[np.uint64]
    documents: npt.NDArray[np.uint32]

    @classmethod
    def none(cls) -> SortedCells:
        """Return no cells."""
        return cls(np.empty(0, np.uint8), np.empty(0, np.uint64), np.empty(0, np.uint32))

    def take(self, places: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> SortedCells:
        """Return some of the cells, by their places or a mask."""
        return SortedCells(self.slots[places], self.hashes[places], self.documents[places])


class RunShape(NamedTuple):
    """The shape of the runs of one tier.

    ``page_bits`` highest bits of a key choose its page; each page has ``page_words`` words of the
    filter.
    """

    page_bits: int
    page_words: int

    @classmethod
    def of(
        cls, run_documents: int, tier: int, filter_bits: Sequence[int] = FILTER_BITS
    ) -> RunShape:
        """Return the shape in a store whose runs of tier 0 have so many documents.

        ``filter_bits`` are as in `FILTER_BITS`.
        """
        bits = (-(-run_documents // _CELLS_A_PAGE) - 1).bit_length()
        cells = -(-run_documents // (1 << bits))
        each = filter_bits[min(tier, len(filter_bits) - 1)]
        return cls(bits + _FAN_IN_BITS * tier, -(-cells * each // 64))

    @property
    def pages(self) -> int:
        """Return how many pages a column has."""
        return 1 << self.page_bits

    @property
    def words(self) -> int:
        """Return how many words of the filter a column has."""
        return self.page_words << self.page_bits

    def page(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Return the page of each key, uint64[n]."""
        # A shift by all 64 bits is undefined.
        high = (hashes >> np.uint64(32)) << np.uint64(self.page_bits)
        return (high >> np.uint64(32)).astype(np.int64)


def packed_pages(
    hashes: npt.NDArray[np.uint64],
    documents: npt.NDArray[np.uint32],
    shape: RunShape,
    pages: range,
) -> Iterator[tuple[int, bytes]]:
    """Return the pages of a column that have cells, and the bytes of each.

    hashes: uint64[n], the keys, sorted, all of these pages. documents: uint32[n].
    """
    lowest = np.arange(pages.start + 1, pages.stop, dtype=np.uint64)
    lowest <<= np.uint64(64 - shape.page_bits)
    ends = [*np.searchsorted(hashes, lowest).tolist(), len(hashes)]
    packed_keys, packed = hashes.view(np.uint8).data, documents.view(np.uint8).data
    start = 0
    for page, end in zip(pages, ends, strict=True):
        if start < end:
            yield page, b"".join((packed_keys[8 * start : 8 * end], packed[4 * start : 4 * end]))
        start = end


def marked(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the keys of the marks of buckets with these keys, uint64[n]."""
    return hashes ^ _MARKED


def find_in_page(page: bytes, key: int) -> int:
    """Return the document of a bucket's key in a page; -1 if it isn't there.

    Returns the lowest 31 bits of its number.
    """
    count = len(page) // _CELL_BYTES
    keys = memoryview(page)[: 8 * count].cast("Q")
    for place in range(bisect_left(keys, key), count):
        if keys[place] != key:
            break
        first = 8 * count + 4 * place
        document = int.from_bytes(page[first : first + 4], "little")
        if document < MARK:
            return document
    return -1


def unpack_cells(page: bytes) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
    """Return the keys, uint64[n], and the documents, uint32[n], in a page.

    Raises:
        ValueError: it isn't a page.
    """
    count = _cells_in(page)
    keys = np.frombuffer(page, "<u8", count).astype(np.uint64, copy=False)
    return keys, np.frombuffer(page, "<u4", count, 8 * count).astype(np.uint32, copy=False)


def unpack_pages(
    pages: Iterable[bytes],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], list[int]]:
    """Return the keys, uint64[n], and the documents, uint32[n], in pages, one after the other.

    Returns also how many cells each page has.

    Raises:
        ValueError: one isn't a page.
    """
    keys, documents, counts = list[bytes](), list[bytes](), list[int]()
    for page in pages:
        count = _cells_in(page)
        keys.append(page[: 8 * count])
        documents.append(page[8 * count :])
        counts.append(count)
    return (
        np.frombuffer(b"".join(keys), "<u8").astype(np.uint64, copy=False),
        np.frombuffer(b"".join(documents), "<u4").astype(np.uint32, copy=False),
        counts,
    )


def _cells_in(page: bytes) -> int:
    count = len(page) // _CELL_BYTES
    if count * _CELL_BYTES != len(page):
        raise ValueError(f"{len(page)} bytes are not whole cells")
    return count
