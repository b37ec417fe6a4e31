"""The two letters i of Turkish and Azeri, with a dot and without, read as one.

Each has a capital: I has no dot, and İ has one. Case folding knows no language. It makes an i of
I, and an i with one more dot of İ, so a text in capitals differs from the same in small letters.
What language a text is in isn't known, and to take the dot off every I would do to all other
languages what is mended for two. So all four letters become i, and so does an i with one more
dot, which is what software that knows no Turkish makes of İ. A letter that carries another mark
is left as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.neighbours import AFRESH, kind_of, kinds

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DOT = 0x307
_READ_AS = {0x130: ord("I"), 0x131: ord("i")}
_BOTH_CASES = np.array([ord("i"), ord("I")], dtype=np.uint32)


def with_one_i(text: str) -> str:
    """Return `text` with each of these letters as i, or I for a capital."""
    kept: list[str] = []
    for char, after in zip(text, f"{text[1:]} ", strict=False):
        if kind_of(after) != AFRESH:
            kept.append(char)
        elif ord(char) != _DOT or kept[-1:] not in (["i"], ["I"]):
            kept.append(chr(_READ_AS.get(ord(char), ord(char))))
    return "".join(kept)


def fold_one_i(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Fold these letters of `codes`, uint32[n], in place; return which dots are to be dropped."""
    dropped = np.zeros(len(codes), dtype=np.bool_)
    found = np.flatnonzero((codes == _DOT) | np.isin(codes, list(_READ_AS)))
    after = codes.take(np.minimum(found + 1, len(codes) - 1))
    found = found.compress((kinds().take(after) == AFRESH) | (found == len(codes) - 1))
    for letter, read in _READ_AS.items():
        codes[found[codes.take(found) == letter]] = read
    dots = found.compress((codes.take(found) == _DOT) & (found > 0))
    dropped[dots.compress(np.isin(codes.take(dots - 1), _BOTH_CASES))] = True
    return dropped
