"""The cells of the same pages of several runs, merged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from worker.index.run_layout import MARK, unpack_pages

__all__ = ["merged"]


def merged(
    runs: Sequence[Sequence[bytes | None]], page_bits: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
    """Return the cells of successive pages, sorted; of equal ones, only those of the last run.

    runs: these pages in each run, the oldest run first; None is a page without cells.
    page_bits: how many of a key's highest bits choose its page.

    Returns the keys, uint64[n], and the documents, uint32[n].

    Raises:
        ValueError: something isn't a page.
    """
    by_page = chain.from_iterable(zip(*runs, strict=True))
    hashes, documents, counts = unpack_pages(page or b"" for page in by_page)
    ends = np.cumsum(counts)[len(runs) - 1 :: len(runs)].tolist()
    order = _order(hashes, ends, page_bits)
    # numpy.take is several times as fast as an index, and fastest if it needn't refuse any.
    ordered = np.take(hashes, order, mode="clip")
    if (ordered[1:] < ordered[:-1]).any():
        order = np.argsort(hashes, kind="stable")
        ordered = np.take(hashes, order, mode="clip")
    documents = np.take(documents, order, mode="clip")
    differ = ordered[1:] != ordered[:-1]
    if differ.all():
        return ordered, documents
    newest = np.ones(len(ordered), bool)
    newest[:-1] = differ | ((documents[1:] ^ documents[:-1]) >= MARK)
    return ordered[newest], documents[newest]


def _order(
    hashes: npt.NDArray[np.uint64], ends: Sequence[int], page_bits: int
) -> npt.NDArray[np.int64]:
    """Return places that sort keys, page by page; equal keys stay in their order: int64[n].

    ends: where the keys of each page end. Keys that differ only in their lowest bits may be in the
    wrong order; there are hardly ever any on the same page.

    What is sorted are numbers: a key's bits below those of its page, and in place of the lowest
    ones its place. That takes half the time of sorting places by keys. numpy sorts numbers that
    have a sign faster.
    """
    place_bits = len(hashes).bit_length()
    within = hashes << np.uint64(page_bits)
    within >>= np.uint64(place_bits + 1)
    within <<= np.uint64(place_bits)
    numbers = within.view(np.int64)
    numbers |= np.arange(len(hashes))
    start = 0
    for end in ends:
        numbers[start:end].sort()
        start = end
    numbers &= (1 << place_bits) - 1
    return numbers
