"""The steps of the normal form that look characters up, for one text and for a whole buffer.

`fold` does compatibility and case of one text, and is the reference. `Folding`
does each code point of a buffer by itself, white space too. That gives the same
where every code point starts afresh: its NFKD begins with one that has combining
class 0 and is the second of no canonical composition. Nothing before it can then
reorder or compose with it or with what follows, so NFKC falls apart in front of
it (Unicode Standard Annex 15, "Concatenation of Normalized Strings"). As NFKC is
done again after case folding, which never sees the neighbours, what a code point
is folded to has to start afresh too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol
from unicodedata import combining, decomposition, normalize

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CODE_POINTS = 0x110000
_CHUNK = 1 << 15  # code points at a time: the arrays of a step stay in the L2 cache

# An entry of the table: 0 if the code point hasn't been met yet; else the code
# point that it becomes, or the first of them, and one of these.
_CODE = (1 << 21) - 1
_JOINING = 1 << 21  # the neighbours matter; it stays
_TAILED = 1 << 22  # more code points follow, in `_tails`
_SINGLE = 1 << 23

_COMPOSED_BELOW = 0x20000  # of all canonical compositions, there is none from here on
_HANGUL_SECONDS = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))  # composed by rule, not by table


class Switches(Protocol):
    """The part of `Parameters` that the normaliser reads."""

    @property
    def nfkc(self) -> bool:
        """Whether compatibility forms are made one."""

    @property
    def casefold(self) -> bool:
        """Whether case is folded."""

    @property
    def collapse_whitespace(self) -> bool:
        """Whether runs of white space become one space."""


def fold(text: str, parameters: Switches) -> str:
    """Return `text` after the steps before white space: compatibility and case."""
    if text.isascii():
        return text.lower() if parameters.casefold else text
    if parameters.nfkc:
        text = normalize("NFKC", text)
    if parameters.casefold:
        text = text.casefold()
        if parameters.nfkc:
            text = normalize("NFKC", text)
    return text


@dataclass(frozen=True, slots=True)
class Folded:
    """n code points, each folded by itself.

    codes: uint32[m].
    inserted: int64[m - n], ascending: for each code point that came in
        addition, the place, from 0 to n, that it was put before.
    joining: int64, ascending: the places, below n, of those whose neighbours
        matter. The text that one is in has to be folded as a whole, from the start.
    """

    codes: NDArray[np.uint32]
    inserted: NDArray[np.int64]
    joining: NDArray[np.int64]


class Folding:
    """Folds code points by a table, which is filled as they are met. One thread at a time."""

    def __init__(self, parameters: Switches) -> None:
        """Take the switches."""
        self._parameters = parameters
        # Memory is taken for the pages written to only: about 100 kB for news in Chinese.
        self._entries = np.zeros(_CODE_POINTS, dtype=np.uint32)
        self._tails: dict[int, str] = {}

    def fold(self, codes: NDArray[np.uint32]) -> Folded:
        """Fold each code point of `codes` by itself, in place unless some are inserted.

        White space becomes the space, if it is to be collapsed.
        """
        parts = []
        inserted = [np.empty(0, dtype=np.int64)]
        joining = [np.empty(0, dtype=np.int64)]
        for low in range(0, len(codes), _CHUNK):
            part = codes[low : low + _CHUNK]
            entries = self._look_up(part)
            places, tails = inserted[0], ""
            if entries.min() < _SINGLE:
                special = np.flatnonzero(entries < _SINGLE)
                is_tailed = entries[special] >= _TAILED
                joining.append(low + special[~is_tailed])
                tailed = special[is_tailed]
                each = list(map(self._tails.__getitem__, part[tailed].tolist()))
                places, tails = np.repeat(tailed + 1, list(map(len, each))), "".join(each)
                inserted.append(low + places)
            np.bitwise_and(entries, np.uint32(_CODE), out=part)
            parts.append(np.insert(part, places, code_points(tails)) if tails else part)
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
            between = normalize("NFKC", char)
            if self._parameters.casefold:
                between = between.casefold()
            if not (_starts_afresh(char) and _starts_afresh(between)):
                return point | _JOINING
        folded = fold(char, self._parameters)
        if self._parameters.collapse_whitespace:
            folded = "".join(" " if part.isspace() else part for part in folded)
        if len(folded) == 1:
            return ord(folded) | _SINGLE
        self._tails[point] = folded[1:]
        return ord(folded[0]) | _TAILED


def code_points(text: str) -> NDArray[np.uint32]:
    """Return the code points of `text`, in an array that may be written to."""
    # Only the bytes of a bytearray may.
    return np.frombuffer(bytearray(text.encode("utf-32-le", "surrogatepass")), dtype="<u4")


def _starts_afresh(text: str) -> bool:
    first = normalize("NFKD", text)[0]
    return combining(first) == 0 and first not in _seconds()


@cache
def _seconds() -> frozenset[str]:
    """Return all characters that are the second of a canonical composition."""
    seconds = {chr(point) for points in _HANGUL_SECONDS for point in points}
    for point in range(_COMPOSED_BELOW):
        parts = decomposition(chr(point)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):  # noqa: PLR2004 (a pair)
            seconds.add(chr(int(parts[1], 16)))
    return frozenset(seconds)
