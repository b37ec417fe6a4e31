"""The filters of new runs, made in parts.

A part has whole pages of one column. See `run_filters` for what a filter is, and how it is asked.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from worker.index.run_filters import mixed
from worker.index.run_layout import RunShape

__all__ = ["filled"]

_HALF = np.uint64(32)
_WORD_BITS = 6
_TO_BITS = np.uint64(32 - _WORD_BITS)
_IN_WORD = np.uint64((1 << _WORD_BITS) - 1)
_OF_WORD = ~_IN_WORD
_NEXT = np.uint64(_WORD_BITS)
_BITS_A_WORD = 4


def filled(hashes: npt.NDArray[np.uint64], shape: RunShape, pages: range) -> npt.NDArray[np.uint64]:
    """Return the part of a filter that these pages have, with their cells in it.

    hashes: uint64[n], the keys, all of these pages; they need not be sorted.

    Returns uint64[len(pages) * shape.page_words].
    """
    # Each bit is a byte at first: cells that share a word then need neither sorting nor combining.
    bits = np.zeros(len(pages) * shape.page_words << _WORD_BITS, np.uint8)
    within_column = hashes >> _HALF
    within_column -= np.uint64(pages.start << (32 - shape.page_bits))
    words = within_column * np.uint64(shape.words)
    words >>= _TO_BITS
    words &= _OF_WORD
    _set(bits, words, hashes.copy())
    numbers = mixed(hashes)
    np.multiply(numbers, np.uint64(shape.page_words), out=words)
    words >>= _TO_BITS
    words &= _OF_WORD
    of_pages = within_column
    of_pages >>= np.uint64(32 - shape.page_bits)
    of_pages *= np.uint64(shape.page_words << _WORD_BITS)
    words += of_pages
    _set(bits, words, numbers)
    return np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64, copy=False)


def _set(
    bits: npt.NDArray[np.uint8], words: npt.NDArray[np.uint64], numbers: npt.NDArray[np.uint64]
) -> None:
    """Set in each word the bits that the lowest 24 bits of a number choose.

    bits: uint8, one a bit. words: uint64[n], the first bits of words. numbers: uint64[n], which
    change.
    """
    places = np.empty(len(words), np.int64)
    chosen = places.view(np.uint64)
    for _ in range(_BITS_A_WORD):
        np.bitwise_and(numbers, _IN_WORD, out=chosen)
        chosen |= words
        bits[places] = 1
        numbers >>= _NEXT
