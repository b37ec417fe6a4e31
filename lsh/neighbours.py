"""Which code points depend on their neighbours in a normal form, and how.

A code point *starts afresh* if its NFKD begins with a code point that has combining
class 0 and is not the second of any canonical composition. Nothing before it can then
reorder or compose with it or with what follows, so NFKC can be split in front of it
(Unicode Standard Annex 15, "Concatenation of Normalized Strings"). NFKC is applied
again after case folding, so the folded form of a code point must start afresh too.

The others *join* what is before them: marks, some vowel signs, the jamo of Hangul.
A special mark is U+0345, the iota below a letter: case folding turns it into a letter,
behind all other marks. So letters that have one start afresh, but can't be folded by
themselves either.

U+200C and U+200D join nothing, but they count as what joins: whether they stay depends
on their neighbours (`lsh.invisible`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from unicodedata import combining, decomposition, normalize

import numpy as np

from lsh.code_points import CODE_POINTS
from lsh.invisible import JOINERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

AFRESH, JOINS, IOTA, WITH_IOTA = range(4)
"""The kinds of code points."""

_BELOW = 0x20000  # all that join, all non-starters, and all compositions lie below
_SYLLABLES = range(0xAC00, 0xD7A4)
_HANGUL_SECONDS = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))  # composed by rule, not by table
_IOTA_BELOW = "\u0345"


@cache
def kinds() -> NDArray[np.uint8]:
    """Return uint8[0x110000], the kind of each code point."""
    found = np.zeros(CODE_POINTS, dtype=np.uint8)  # AFRESH
    found[:_BELOW] = [kind_of(chr(point)) for point in range(_BELOW)]
    return found


@cache
def classes() -> NDArray[np.uint8]:
    """Return uint8[0x110000], the canonical combining class of each code point."""
    found = np.zeros(CODE_POINTS, dtype=np.uint8)
    found[:_BELOW] = [combining(chr(point)) for point in range(_BELOW)]
    return found


def kind_of(char: str) -> int:
    """Return the kind of one code point."""
    if char in JOINERS:
        return JOINS
    if not (combining(char) or decomposition(char) or char in seconds()):
        return AFRESH
    apart = normalize("NFKD", char)
    if _IOTA_BELOW in apart:
        return WITH_IOTA if _begins_afresh(apart) else IOTA
    folded = normalize("NFKD", normalize("NFKC", char).casefold())
    return AFRESH if all(map(_begins_afresh, (apart, folded))) else JOINS


def _begins_afresh(apart: str) -> bool:
    return combining(apart[0]) == 0 and apart[0] not in seconds()


@dataclass(frozen=True, slots=True)
class Compositions:
    """The canonical compositions of two code points.

    firsts: int64[0x110000], where the row of each code point begins in the table; 0 if it
        begins no composition.
    seconds: uint16[0x110000], the column of each code point; 0 if it ends none.
    table: uint32, row by row, what the pairs compose to; 0 for nothing.
    """

    firsts: NDArray[np.int64]
    seconds: NDArray[np.uint16]
    table: NDArray[np.uint32]

    def wholes(self, firsts: NDArray[np.uint32], seconds: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return uint32[n], what the pairs compose to; 0 for nothing."""
        at = self.firsts.take(firsts)
        at += self.seconds.take(seconds)
        return self.table.take(at)


@cache
def compositions() -> Compositions:
    """Return the table."""
    pairs = [
        *(
            (first, second, whole)
            for first, second, whole in _pairs()
            # Some pairs are never composed again.
            if normalize("NFC", chr(first) + chr(second)) == chr(whole)
        ),
        *_syllables(),
    ]
    rows = sorted({first for first, _, _ in pairs})
    columns = sorted({second for _, second, _ in pairs})
    width = 1 + len(columns)
    firsts = np.zeros(CODE_POINTS, dtype=np.int64)
    firsts[rows] = np.arange(1, 1 + len(rows)) * width
    seconds = np.zeros(CODE_POINTS, dtype=np.uint16)
    seconds[columns] = np.arange(1, width)
    table = np.zeros((1 + len(rows)) * width, dtype=np.uint32)
    for first, second, whole in pairs:
        table[firsts[first] + seconds[second]] = whole
    return Compositions(firsts, seconds, table)


def _syllables() -> Iterator[tuple[int, int, int]]:
    """Yield the pairs that the syllables of Hangul are composed of, and the syllables."""
    for point in _SYLLABLES:
        apart = normalize("NFD", chr(point))
        yield ord(normalize("NFC", apart[:-1])), ord(apart[-1]), point


@cache
def second_starters() -> NDArray[np.bool_]:
    """Return bool[0x110000], whether a code point is a starter that ends a composition."""
    found: NDArray[np.bool_] = (compositions().seconds > 0) & (classes() == 0)
    return found


@cache
def seconds() -> frozenset[str]:
    """Return all characters that are the second of a canonical composition."""
    hangul = (chr(point) for points in _HANGUL_SECONDS for point in points)
    return frozenset([*hangul, *(chr(second) for _, second, _ in _pairs())])


@cache
def _pairs() -> tuple[tuple[int, int, int], ...]:
    """Return the pairs that code points decompose to canonically, and those code points."""
    return tuple(_each_pair())


def _each_pair() -> Iterator[tuple[int, int, int]]:
    for point in range(_BELOW):
        parts = decomposition(chr(point)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):  # noqa: PLR2004 -- a pair
            yield int(parts[0], 16), int(parts[1], 16), point
