"""The steps of the normal form that look characters up, for one text and for a whole buffer.

`fold` normalises compatibility forms and case of one text, and is the reference.
`Folding` folds each code point of a buffer by itself, including white space. The
results are equal where every code point starts afresh: its NFKD begins with a
code point that has combining class 0 and is not the second of any canonical
composition. Nothing before it can then reorder or compose with it or with what
follows, so NFKC can be split in front of it (Unicode Standard Annex 15,
"Concatenation of Normalized Strings"). NFKC is applied again after case folding,
which is context-free, so the folded form of a code point must start afresh too.
Runs of combining marks begin behind such code points or are preceded by them, so
only texts with others have runs to interrupt (`lsh.stream_safe`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol
from unicodedata import combining, decomposition, normalize

import numpy as np

from lsh.code_points import CODE_POINTS, code_points, splice
from lsh.stream_safe import nfkc

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHUNK = 1 << 15  # code points at a time: the arrays of a step stay in the L2 cache

# An entry of the table: 0 if the code point hasn't been seen yet; otherwise the
# (first) code point that it folds to, and one of these flags.
_CODE = (1 << 21) - 1
_JOINING = 1 << 21  # the neighbours matter; it is left unchanged
_TAILED = 1 << 22  # more code points follow, in `_tails`
_SINGLE = 1 << 23

_COMPOSED_BELOW = 0x20000  # all canonical compositions lie below
_HANGUL_SECONDS = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))  # composed by rule, not by table


class Switches(Protocol):
    """The part of `Parameters` that the normaliser reads."""

    @property
    def nfkc(self) -> bool:
        """Return whether compatibility forms are unified."""

    @property
    def casefold(self) -> bool:
        """Return whether case is folded."""

    @property
    def collapse_whitespace(self) -> bool:
        """Return whether runs of white space become one space."""


def fold(text: str, parameters: Switches) -> str:
    """Return `text` with compatibility forms and case folded; white space is unchanged."""
    if text.isascii():
        return text.lower() if parameters.casefold else text
    if parameters.nfkc:
        text = nfkc(text)
    if not parameters.casefold:
        return text
    folded = text.casefold()
    # What case folding leaves alone is still its own NFKC.
    return nfkc(folded) if parameters.nfkc and folded != text else folded


@dataclass(frozen=True, slots=True)
class Folded:
    """n code points, each folded by itself.

    codes: uint32[m].
    inserted: int64[m - n], ascending: for each additional code point, the
        position from 0 to n before which it was inserted.
    joining: int64, ascending: the positions below n of code points whose
        neighbours matter. The original text around one must be folded as a whole,
        from the last code point before it that isn't among them.
    """

    codes: NDArray[np.uint32]
    inserted: NDArray[np.int64]
    joining: NDArray[np.int64]


class Folding:
    """Folds code points by a table, which is filled on first use. One thread at a time."""

    def __init__(self, parameters: Switches) -> None:
        """Take the switches."""
        self._parameters = parameters
        # Only pages that are written to take memory: about 100 kB for news in Chinese.
        self._entries = np.zeros(CODE_POINTS, dtype=np.uint32)
        self._tails = _Tails()

    def fold(self, codes: NDArray[np.uint32]) -> Folded:
        """Fold each code point of `codes` by itself, in place unless some are inserted.

        If white space is to be collapsed, each becomes a space.
        """
        parts = []
        none = np.empty(0, dtype=np.int64)
        inserted, joining = [none], [none]
        for low in range(0, len(codes), _CHUNK):
            part = codes[low : low + _CHUNK]
            entries = self._look_up(part)
            tailed = none
            if entries.min() < _SINGLE:
                special = np.flatnonzero(entries < _SINGLE)
                is_tailed = entries[special] >= _TAILED
                joining.append(low + special[~is_tailed])
                tailed = special[is_tailed]
            points = part[tailed]
            np.bitwise_and(entries, np.uint32(_CODE), out=part)
            if len(tailed):
                lengths, tails = self._tails.of(points)
                places = np.repeat(tailed + 1, lengths)
                inserted.append(low + places)
                part = splice(part, places, tails)
            parts.append(part)
        return Folded(
            np.concatenate(parts) if len(inserted) > 1 else codes,
            np.concatenate(inserted),
            np.concatenate(joining),
        )

    def _look_up(self, points: NDArray[np.uint32]) -> NDArray[np.uint32]:
        entries = self._entries.take(points)
        if not entries.all():
            for point in np.unique(points[entries == 0]).tolist():
                self._entries[point] = self._entry(point)
            entries = self._entries.take(points)
        return entries

    def _entry(self, point: int) -> int:
        char = chr(point)
        if self._parameters.nfkc:
            between = nfkc(char)
            if self._parameters.casefold:
                between = between.casefold()
            if not (_starts_afresh(char) and _starts_afresh(between)):
                return point | _JOINING
        folded = fold(char, self._parameters)
        if self._parameters.collapse_whitespace:
            folded = "".join(" " if part.isspace() else part for part in folded)
        if len(folded) == 1:
            return ord(folded) | _SINGLE
        self._tails.add(point, folded[1:])
        return ord(folded[0]) | _TAILED


class _Tails:
    """What follows the first code point in the folded forms of code points."""

    def __init__(self) -> None:
        self._numbers = np.zeros(CODE_POINTS, dtype=np.uint16)  # of the tails, by code point
        self._lengths = np.empty(0, dtype=np.int64)
        self._begins = np.empty(0, dtype=np.int64)
        self._codes = np.empty(0, dtype=np.uint32)

    def add(self, point: int, tail: str) -> None:
        """Keep the tail of one more code point."""
        self._numbers[point] = len(self._lengths)
        self._lengths = np.append(self._lengths, len(tail))
        self._begins = np.append(self._begins, len(self._codes))
        self._codes = np.append(self._codes, code_points(tail))

    def of(self, points: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return the length of each tail of `points`, and all tails, end to end."""
        numbers = self._numbers.take(points)
        lengths = self._lengths[numbers]
        ends = np.cumsum(lengths)
        shifts = np.repeat(self._begins[numbers] - (ends - lengths), lengths)
        return lengths, self._codes[shifts + np.arange(len(shifts))]


def _starts_afresh(text: str) -> bool:
    first = normalize("NFKD", text)[0]
    return combining(first) == 0 and first not in _seconds()


@cache
def _seconds() -> frozenset[str]:
    """Return all characters that are the second of a canonical composition."""
    seconds = {chr(point) for points in _HANGUL_SECONDS for point in points}
    for point in range(_COMPOSED_BELOW):
        parts = decomposition(chr(point)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):  # noqa: PLR2004 -- a pair
            seconds.add(chr(int(parts[1], 16)))
    return frozenset(seconds)
