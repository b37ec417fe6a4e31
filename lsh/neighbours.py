"""Which code points depend on their neighbours in a normal form, and how.

A code point *starts afresh* if its NFKD begins with a code point that has combining
class 0 and is not the second of any canonical composition. Nothing before it can then
reorder or compose with it or with what follows, so NFKC can be split in front of it
(Unicode Standard Annex 15, "Concatenation of Normalized Strings"). NFKC is applied
again after case folding, so the folded form of a code point must start afresh too.

The others *join* what is before them. Nearly all are marks: their NFKD has only
non-starters, code points with a combining class above 0. The remaining ones are
vowel signs, the jamo of Hangul, and U+0345 with all that decomposes to it: it is
a mark that case folding turns into a letter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from unicodedata import combining, decomposition, normalize

import numpy as np

from lsh.code_points import CODE_POINTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

AFRESH, MARK, OTHER = range(3)
"""The kinds of code points."""

_BELOW = 0x20000  # all that join, all non-starters, and all compositions lie below
_HANGUL_SECONDS = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))  # composed by rule, not by table
_BECOMES_A_LETTER = "\u0345"


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
    if not (combining(char) or decomposition(char) or char in seconds()):
        return AFRESH
    apart = normalize("NFKD", char)
    if all(map(combining, apart)) and _BECOMES_A_LETTER not in apart:
        return MARK
    folded = normalize("NFKC", char).casefold()
    afresh = _begins_afresh(apart) and _begins_afresh(normalize("NFKD", folded))
    return AFRESH if afresh and _BECOMES_A_LETTER not in apart else OTHER


def _begins_afresh(apart: str) -> bool:
    return combining(apart[0]) == 0 and apart[0] not in seconds()


@dataclass(frozen=True, slots=True)
class Compositions:
    """The canonical compositions of a starter and a non-starter.

    starters, marks: uint16[0x110000], the row and the column of each code point; 0 if it
        begins, or ends, no composition.
    table: uint32[rows * columns], what row * columns + column compose to; 0 for nothing.
    columns: how many there are.
    """

    starters: NDArray[np.uint16]
    marks: NDArray[np.uint16]
    table: NDArray[np.uint32]
    columns: int


@cache
def compositions() -> Compositions:
    """Return the table."""
    pairs = [
        (first, mark, whole)
        for first, mark, whole in _pairs()
        # Some pairs are never composed again.
        if combining(chr(mark)) and normalize("NFC", chr(first) + chr(mark)) == chr(whole)
    ]
    rows = {first: row for row, first in enumerate(sorted({pair[0] for pair in pairs}), 1)}
    columns = {mark: at for at, mark in enumerate(sorted({pair[1] for pair in pairs}), 1)}
    starters, marks = (np.zeros(CODE_POINTS, dtype=np.uint16) for _ in range(2))
    starters[list(rows)] = list(rows.values())
    marks[list(columns)] = list(columns.values())
    table = np.zeros((1 + len(rows), 1 + len(columns)), dtype=np.uint32)
    for first, mark, whole in pairs:
        table[rows[first], columns[mark]] = whole
    return Compositions(starters, marks, table.reshape(-1), table.shape[1])


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
