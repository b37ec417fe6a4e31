"""NFKC at a cost that grows with the length of the text alone.

Two things make NFKC expensive in the hands of whoever writes a text, and both are
bounded before it is applied:

- A run of non-starters, code points with a combining class above 0, is sorted by
  insertion, which takes the square of its length (CVE-2026-3276; whether this is
  fixed depends on the patch release of Python). Of the Unicode Standard Annex 15,
  section 13, the Stream-Safe Text Process (UAX15-D4) inserts U+034F, the combining
  grapheme joiner, wherever a run would have more than 30. No text of any language
  has such runs, and a text without them is unchanged.
- A compatibility form is cut after 6 code points. This concerns U+FDFA (which has
  18) and U+FDFB (8), and no other code point of three bytes of UTF-8 has more than
  6. So a normal form has at most 2 code points for each byte of the text. Unicode
  never changes the decomposition of an assigned code point.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from unicodedata import combining, decomposition, normalize

import numpy as np

from lsh.code_points import CODE_POINTS, as_text, code_points, splice

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST = 30  # non-starters in a row, counted in NFKD
JOINER = 0x34F
"""The combining grapheme joiner, a starter."""
_CHUNK = 1 << 15  # code points at a time: the arrays of a step stay in the L2 cache
_MARKS_BELOW = 0x20000  # all non-starters, and all that decompose to them, lie below
_SUPPLEMENTARY = 0x10000
_CUT = {char: normalize("NFKC", char)[:6] for char in "\ufdfa\ufdfb"}


def nfkc(text: str) -> str:
    """Return NFKC of the bounded `text`. The result is bounded too, and its own NFKC."""
    return normalised(bounded(text))


def bounded(text: str) -> str:
    """Return `text` with forms that expand far cut, and runs of non-starters interrupted."""
    for char, cut in _CUT.items():
        if char in text:
            text = text.replace(char, cut)
    return stream_safe(text)


def normalised(text: str) -> str:
    """Return NFKC of a text that is bounded."""
    return normalize("NFKC", text)


def stream_safe(text: str) -> str:
    """Return `text` with U+034F inserted by the Stream-Safe Text Process, UAX15-D4."""
    if not _marks().many.search(text):
        return text
    codes = code_points(text)
    places = interruptions(codes)
    return as_text(splice(codes, places, np.full(len(places), JOINER, dtype=np.uint32)))


def interruptions(codes: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the positions before which U+034F is inserted, int64, ascending."""
    marks = _marks()
    before: list[int] = []
    low = 0
    while low < len(codes):
        block = codes[low : low + _CHUNK]
        found, again = _insertions(marks.initial.take(block), marks.trailing.take(block))
        before += [low + position for position in found]
        low = low + again if low + _CHUNK < len(codes) else len(codes)
    return np.array(before, dtype=np.int64)


def fewest() -> int:
    """Return how many code points a run has at least that has to be interrupted."""
    return _marks().fewest


@dataclass(frozen=True, slots=True)
class _Marks:
    """What the process has to know of each code point.

    initial: uint8[0x110000], the length of its NFKD if that has no starter, else 0.
    trailing: uint8[0x110000], the non-starters at the end of an NFKD with a starter.
    fewest: how many code points in a row can exceed the limit, with what precedes them.
    many: finds every place where the limit could be exceeded, and few others.
    """

    initial: NDArray[np.uint8]
    trailing: NDArray[np.uint8]
    fewest: int
    many: re.Pattern[str]


def _insertions(initial: NDArray[np.uint8], trailing: NDArray[np.uint8]) -> tuple[list[int], int]:
    """Return where U+034F is inserted, and from where the count begins afresh.

    The first: the positions before which it is inserted, ascending. The second: the last
    of them, or the last code point with a starter if that comes later. Nothing before it
    matters to what follows.
    """
    within = initial > 0
    # A code point with a starter adds more than the limit, so no run reaches past one.
    counts = np.where(within, initial, _MOST + 1)
    counted = np.cumsum(counts, dtype=np.int64)
    # first[n]: the first position at which more than n are counted.
    first = np.repeat(np.arange(len(counts) + 1), np.append(counts, _MOST + 1))
    # following[i]: the first position that doesn't fit if the count begins afresh at i.
    begun = counted - np.where(within, initial, trailing)
    following = first.take(begun + _MOST)
    exceeded = np.append(within, np.False_)[following]
    starts = exceeded & ~within
    starts[0] = exceeded[0]
    before: list[int] = []
    next_of, goes_on = following.data, exceeded.data
    for start in np.flatnonzero(starts).tolist():
        at = start
        while goes_on[at]:
            at = next_of[at]
            before.append(at)
    last = np.flatnonzero(~within)[-1:].tolist()
    return before, max([0, *last, *before[-1:]])


@cache
def _marks() -> _Marks:
    initial = np.zeros(CODE_POINTS, dtype=np.uint8)
    trailing = np.zeros(CODE_POINTS, dtype=np.uint8)
    for point in range(_MARKS_BELOW):
        char = chr(point)
        if not combining(char) and not decomposition(char):
            continue
        classes = list(map(combining, normalize("NFKD", char)))
        if all(classes):
            initial[point] = len(classes)
        else:
            trailing[point] = classes[::-1].index(0)
    fewest = -(-(_MOST + 1 - int(trailing.max())) // int(initial.max()))
    marks = np.flatnonzero(initial).tolist()
    # One range holds all marks outside the basic plane: many ranges would be slow to search.
    basic = [point for point in marks if point < _SUPPLEMENTARY]
    others = marks[len(basic) :]
    members = "".join(map(chr, basic)) + f"{chr(others[0])}-{chr(others[-1])}"
    return _Marks(initial, trailing, fewest, re.compile(f"[{members}][{members}]{{{fewest - 1}}}"))
