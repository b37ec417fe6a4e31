"""A bound on marks that cost more work than their size, for a text as a whole.

Marks are put in order and composed at a cost that follows their number. A text can be
made of letters that have three marks and more, some in one code point: U+1F82 has
three, U+0344 is two. It would take six to nine times the time of plain text.

So a text may have one mark beyond the second of its letter for each 16 bytes of UTF-8,
and 32 more. Otherwise all its marks are dropped, apart from those that are one code point
with their letter; of these, the iota below goes too. No text of any language is near that
bound: Vietnamese has at most two marks on a letter, and Hebrew with vowels and accents
one beyond the second in about 60 bytes (Genesis 1:1). Heaps of marks on every letter are.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from unicodedata import normalize

import numpy as np

from lsh.code_points import as_text, code_points
from lsh.neighbours import WITH_IOTA, kinds
from lsh.stream_safe import marks_of_runs, non_starters

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHARE = 16  # of the bytes of a text: so many marks may be beyond the second,
_FREE = 32  # and so many more.
LIGHT = 2
"""So many marks on a letter are no burden."""
_IOTA_BELOW = "\u0345"


def too_heavy(beyond: int, size: int) -> bool:
    """Return whether a text has too many marks.

    beyond: its marks beyond the second of their letters.
    size: its size in UTF-8.
    """
    return _SHARE * (beyond - _FREE) > size


def beyond_the_second(codes: NDArray[np.uint32], counts: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return int32[n], how many of the marks in each code point are beyond the second.

    counts: int32[n], what `lsh.stream_safe.marks_of_runs` returns.
    """
    return np.minimum(np.maximum(counts - LIGHT, 0), non_starters().take(codes))


def lightened(text: str, size: int) -> str:
    """Return `text`, which had `size` bytes in UTF-8, without marks if it has too many."""
    codes = code_points(text)
    if not kinds().take(codes).any():
        return text
    beyond = beyond_the_second(codes, marks_of_runs(codes))
    if not too_heavy(int(beyond.sum()), size):
        return text
    return as_text(codes.compress(~is_mark(codes))).translate(without_iota())


def is_mark(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return which of `codes`, uint32[n], are nothing but marks: bool[n]."""
    kind = kinds().take(codes)
    marks: NDArray[np.bool_] = (non_starters().take(codes) > 0) & (kind > 0) & (kind != WITH_IOTA)
    return marks


@cache
def without_iota() -> dict[int, str]:
    """Return what letters with an iota below become without it."""
    return {
        point: normalize("NFC", normalize("NFKD", chr(point)).replace(_IOTA_BELOW, ""))
        for point in np.flatnonzero(kinds() == WITH_IOTA).tolist()
    }
