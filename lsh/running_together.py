"""Letters run together: what stands between two letters is dropped, at a switch.

`join_letters`: white space is dropped. So letters spaced out are joined, and words too.
    It stays before a mark, which would join what is before it.
`drop_symbols`: then stretches of punctuation and symbols, of which emoji are a part, are
    dropped if there is a letter, mark or number on either side. What begins or ends a text
    stays, so a text of nothing but emoji has a fingerprint.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING
from unicodedata import category

import numpy as np

from lsh.code_points import CODE_POINTS
from lsh.neighbours import AFRESH, kind_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.code_points import Codes
    from lsh.switches import Switches

_NONE, _LETTER, _MARK, _SYMBOL, _SPACE = "\0lmsw"
"""The sorts of characters. A mark can end what is before a stretch, but not begin what is
behind it: nothing may come to stand behind a letter that joins it (`lsh.neighbours`)."""
_BELOW = 0x40000  # no character that is above is of any other sort than _NONE
_SPACES = re.compile(f"{_SPACE}(?!{_MARK})")
_SYMBOLS = re.compile(f"(?<=[{_LETTER}{_MARK}]){_SYMBOL}+(?={_LETTER})")


def run_together(text: str, switches: Switches) -> str:
    """Return `text` without what stands between letters."""
    if switches.join_letters:
        text = _without(_SPACES, text)
    return _without(_SYMBOLS, text) if switches.drop_symbols else text


def _without(stretches: re.Pattern[str], text: str) -> str:
    """Return `text` without what has the sorts that are found."""
    parts, done = [], 0
    for found in stretches.finditer(text.translate(_Sorts())):
        parts.append(text[done : found.start()])
        done = found.end()
    return "".join([*parts, text[done:]])


def white_space(codes: Codes, ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of `codes`, uint8[n] or uint32[n], are white space to be dropped: bool[n].

    ends: int64, positions from 0 to n at which a text ends. What is there stays.
    """
    sorts = _sorts().take(codes)
    found: NDArray[np.bool_] = sorts == ord(_SPACE)
    found[:-1] &= sorts[1:] != ord(_MARK)
    found[ends[ends < len(found)]] = False
    return found


def symbols_between(codes: Codes, ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of `codes` are symbols between letters: bool[n]. See `white_space`."""
    sorts = np.append(_sorts().take(codes), np.uint8(0))
    sorts[ends] = ord(_NONE)
    symbols = np.zeros(len(sorts) + 1, dtype=np.bool_)
    symbols[1:] = sorts == ord(_SYMBOL)
    edges = np.flatnonzero(symbols[1:] != symbols[:-1])
    begins, afters = edges[::2], edges[1::2]
    before = sorts.take(begins - 1)
    between = (before == ord(_LETTER)) | (before == ord(_MARK))
    between &= sorts.take(afters) == ord(_LETTER)
    changes = np.zeros(len(sorts), dtype=np.int8)
    changes[begins[between]] = 1
    changes[afters[between]] = -1
    return np.cumsum(changes[:-1], dtype=np.int8).view(np.bool_)


def _sort_of(char: str) -> str:
    kind = category(char)[0]
    if char.isspace():
        return _SPACE
    if kind in "LN":
        return _LETTER if kind_of(char) == AFRESH else _MARK
    return {"M": _MARK, "P": _SYMBOL, "S": _SYMBOL}.get(kind, _NONE)


class _Sorts(dict[int, str]):
    def __missing__(self, point: int) -> str:
        self[point] = found = _sort_of(chr(point))
        return found


@cache
def _sorts() -> NDArray[np.uint8]:
    """Return uint8[0x110000], the sort of each code point."""
    found = np.zeros(CODE_POINTS, dtype=np.uint8)  # _NONE
    found[:_BELOW] = [ord(_sort_of(chr(point))) for point in range(_BELOW)]
    return found
