"""A table of what code points are replaced by, applied to arrays of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.code_points import CODE_POINTS, code_points, splice

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

# An entry of the table: 0 if the code point hasn't been seen yet; otherwise the
# (first) code point that replaces it, and one of these flags.
_CODE = (1 << 21) - 1
_KEPT = 1 << 21  # it has no form
_TAILED = 1 << 22  # more code points follow, in `_tails`
_SINGLE = 1 << 23

_NONE = np.empty(0, dtype=np.int64)


class Expansion:
    """Replaces code points by a table, which is filled on first use. One thread at a time."""

    def __init__(self, form: Callable[[int], str | None]) -> None:
        """Take what gives the form of a code point, which isn't empty; None: it has no form."""
        self._form = form
        # Only pages that are written to take memory: about 100 kB for news in Chinese.
        self._entries = np.zeros(CODE_POINTS, dtype=np.uint32)
        self._tails = _Tails()

    def expand(
        self, codes: NDArray[np.uint32]
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
        """Replace each of `codes`, uint32[n], in place unless some are inserted.

        Returns the new code points; for each inserted one the position below n + 1
        before which it was, int64, ascending; and the positions of code points
        without a form, which are unchanged, int64, ascending.
        """
        entries = self._look_up(codes)
        if not len(entries) or entries.min() >= _SINGLE:
            np.bitwise_and(entries, np.uint32(_CODE), out=codes)
            return codes, _NONE, _NONE
        special = np.flatnonzero(entries < _SINGLE)
        is_tailed = entries[special] >= _TAILED
        tailed, kept = special[is_tailed], special[~is_tailed]
        points = codes[tailed]
        np.bitwise_and(entries, np.uint32(_CODE), out=codes)
        if not len(tailed):
            return codes, _NONE, kept
        lengths, tails = self._tails.of(points)
        places = np.repeat(tailed + 1, lengths)
        return splice(codes, places, tails), places, kept

    def _look_up(self, points: NDArray[np.uint32]) -> NDArray[np.uint32]:
        entries = self._entries.take(points)
        if not entries.all():
            for point in np.unique(points[entries == 0]).tolist():
                self._entries[point] = self._entry(point)
            entries = self._entries.take(points)
        return entries

    def _entry(self, point: int) -> int:
        form = self._form(point)
        if form is None:
            return point | _KEPT
        if len(form) == 1:
            return ord(form) | _SINGLE
        self._tails.add(point, form[1:])
        return ord(form[0]) | _TAILED


class _Tails:
    """What follows the first code point in the forms of code points."""

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
