"""NFKC at a cost that grows with the length of the text alone.

Two things make NFKC expensive in the hands of whoever writes a text, and both are
bounded before it is applied:

- A run of non-starters, code points with a combining class above 0, is sorted by
  insertion, which takes the square of its length (CVE-2026-3276; whether this is
  fixed depends on the patch release of Python). A run is cut after 30, the limit of the
  Stream-Safe Text Format (Unicode Standard Annex 15, section 13). No text of any
  language has longer runs. The annex's own process would insert U+034F instead, which
  nothing shows; whoever stacks marks could then choose how many of them count.
- A compatibility form is cut after 6 code points. This concerns U+FDFA (which has
  18) and U+FDFB (8), and no other code point of three bytes of UTF-8 has more than
  6. Unicode never changes the decomposition of an assigned code point.
- A text can still be made of nothing but characters that expand, such as U+3316: to two
  code points for each byte, and three times the bytes. Whether a text goes too far is
  decided for the text as a whole: its characters may expand beyond their own sizes in
  UTF-8 by a quarter of the text's size, and 32 more. Otherwise each is cut to its size.
  Such a text is a list of characters, not language; any other one is unchanged. So a
  normal form has at most 1.25 code points for each byte of the text, and 32 more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from unicodedata import category, combining, decomposition, normalize

import numpy as np

from lsh.code_points import CODE_POINTS, as_text, code_points
from lsh.invisible import JOINERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_MARKS = 30
"""Non-starters in a row, counted in NFKD."""

_SHARE = 4  # A text may expand by this part of its size,
_FREE = 32  # and by so many code points.
_EXPANDING_BELOW = 0x20000  # above it, no character becomes more code points than it has bytes
_JOINER = 0x200C  # and the next
_MARKS_BELOW = 0x20000  # all non-starters, and all that decompose to them, lie below
_SUPPLEMENTARY = 0x10000
_CUT = {char: normalize("NFKC", char)[:6] for char in "\ufdfa\ufdfb"}


def nfkc(text: str) -> str:
    """Return NFKC of the bounded `text`. The result is bounded too, and its own NFKC."""
    return normalize("NFKC", bounded(text))


def bounded(text: str) -> str:
    """Return `text` with forms that expand far cut, and long runs of non-starters."""
    for char, cut in _CUT.items():
        if char in text:
            text = text.replace(char, cut)
    if not _marks().many.search(text):
        return text
    codes = code_points(text)
    return as_text(codes.compress(~excess(codes)))


def too_far(excess: int, size: int) -> bool:
    """Return whether a text expands too far.

    excess: how many code points its characters become beyond their own sizes in UTF-8.
    size: the size of the text in UTF-8.
    """
    return _SHARE * (excess - _FREE) > size


def size_of(text: str) -> int:
    """Return the size of a text in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


@cache
def expanding() -> re.Pattern[str]:
    """Return what finds the characters that can become more code points than they have bytes."""
    return re.compile(f"[{''.join(filter(_expands, map(chr, range(_EXPANDING_BELOW))))}]")


def _expands(char: str) -> bool:
    if char.isascii() or category(char) == "Cs":
        return False
    forms = normalize("NFKC", char), char.casefold()
    return max(map(len, forms)) > size_of(char)


def excess(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return which of `codes`, uint32[n], are behind 30 non-starters of their run: bool[n]."""
    return (marks_of_runs(codes) > MOST_MARKS) & (_marks().initial.take(codes) > 0)


def marks_of_runs(codes: NDArray[np.uint32]) -> NDArray[np.int32]:
    """Return int32[n], the non-starters of each run up to and with each of `codes`, uint32[n].

    They are counted in NFKD. U+200C and U+200D (`lsh.invisible`) neither count nor end a
    run: they may be dropped.
    """
    marks = _marks()
    counts = marks.initial.take(codes)
    ends = (counts == 0) & ((codes & ~np.uint32(1)) != _JOINER)
    counted = np.cumsum(counts, dtype=np.int32)
    # What had been counted before each run began: at its starter, less the marks in that.
    before = np.where(ends, counted - marks.trailing.take(codes), 0)
    latest = np.maximum.accumulate(np.where(ends, np.arange(len(codes), dtype=np.int32), 0))
    return counted - before.take(latest)


@cache
def non_starters() -> NDArray[np.uint8]:
    """Return uint8[0x110000], how many non-starters the NFKD of each code point ends with."""
    return _marks().trailing + _marks().initial


@dataclass(frozen=True, slots=True)
class _Marks:
    """What there is to know of each code point.

    initial: uint8[0x110000], the length of its NFKD if that has no starter, else 0.
    trailing: uint8[0x110000], the non-starters at the end of an NFKD with a starter.
    fewest: how many code points in a row can exceed the limit, with what precedes them.
    many: finds every place where the limit could be exceeded, and few others.
    """

    initial: NDArray[np.uint8]
    trailing: NDArray[np.uint8]
    fewest: int
    many: re.Pattern[str]


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
    fewest = -(-(MOST_MARKS + 1 - int(trailing.max())) // int(initial.max()))
    marks = np.flatnonzero(initial).tolist()
    # One range holds all marks outside the basic plane: many ranges would be slow to search.
    basic = [point for point in marks if point < _SUPPLEMENTARY]
    others = marks[len(basic) :]
    members = JOINERS + "".join(map(chr, basic)) + f"{chr(others[0])}-{chr(others[-1])}"
    return _Marks(initial, trailing, fewest, re.compile(f"[{members}][{members}]{{{fewest - 1}}}"))
