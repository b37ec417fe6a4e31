"""A table of what code points are replaced by, applied to arrays of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lsh.code_points import CODE_POINTS, Pieces, code_points, replaced

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

# An entry of the table: 0 if the code point hasn't been seen yet; otherwise the
# (first) code point that replaces it, and one of these flags.
_CODE = (1 << 21) - 1
_KEPT = 1 << 21  # it has no form
_LONG = 1 << 22  # the form has more than one code point, or none
_SINGLE = 1 << 23
_SPARSE = 16  # Fewer long forms than one in this many are spliced into what stays as it is.


@dataclass(frozen=True, slots=True)
class Shifts:
    """How positions move in an array in which some code points were inserted or removed.

    places: int64[m], ascending: positions from here on move.
    totals: int64[m + 1], by how many for positions past i of the places, from 0.
    """

    places: NDArray[np.int64]
    totals: NDArray[np.int64]

    @classmethod
    def of(cls, places: NDArray[np.int64], growth: NDArray[np.int64]) -> Shifts:
        """Return the shifts for int64[m] `growth` at `places`."""
        totals = np.zeros(len(growth) + 1, dtype=np.int64)
        np.cumsum(growth, out=totals[1:])
        return cls(places, totals)

    def moved(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where `positions`, int64, are now."""
        if not len(self.places):
            return positions
        return positions + self.totals[np.searchsorted(self.places, positions, side="right")]


_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Found:
    """n code points, each replaced by the first one of its form.

    codes: uint32[n].
    long: int64[m], ascending: positions of those with forms of other lengths than one.
    forms: uint16[m], the numbers of these forms.
    kept: as in `Expanded`.
    """

    codes: NDArray[np.uint32]
    long: NDArray[np.int64]
    forms: NDArray[np.uint16]
    kept: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Expanded:
    """n code points, each replaced by its form.

    codes: uint32[m].
    places: int64, ascending: positions behind code points with forms of other lengths, 1 to n.
    growth: int64, how many code points were inserted there; -1 if one was removed.
    kept: int64, ascending: positions below n of code points that have no form. They are
        unchanged.
    begins: int64[n], where each form begins, if it was needed; else None.
    """

    codes: NDArray[np.uint32]
    places: NDArray[np.int64]
    growth: NDArray[np.int64]
    kept: NDArray[np.int64]
    begins: NDArray[np.int64] | None


class Expansion:
    """Replaces code points by a table, which is filled on first use. One thread at a time."""

    def __init__(
        self, form: Callable[[int], str | None], limit: Callable[[int], int] | None = None
    ) -> None:
        """Take what gives the form of a code point; None: it has no form.

        limit: gives the length to which forms may be cut (`spliced`); None: they may not.
        """
        self._limit = limit
        self._form = form
        # Only pages that are written to take memory: about 100 kB for news in Chinese.
        self._entries = np.zeros(CODE_POINTS, dtype=np.uint32)
        self._long = _LongForms()

    def expand(self, codes: NDArray[np.uint32]) -> Expanded:
        """Replace each of `codes`, uint32[n], in place unless their number changes."""
        return self.spliced(self.found(codes))

    def unchanged(self, codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return which of `codes`, uint32[n], are their own forms: bool[n]."""
        same: NDArray[np.bool_] = self._look_up(codes) == codes | np.uint32(_SINGLE)
        return same

    def found(self, codes: NDArray[np.uint32]) -> Found:
        """Replace each of `codes`, uint32[n], by the first code point of its form, in place."""
        entries = self._look_up(codes)
        long = kept = _NONE
        if len(entries) and entries.min() < _SINGLE:
            special = np.flatnonzero(entries < _SINGLE)
            is_long = entries.take(special) >= _LONG
            long, kept = special.compress(is_long), special.compress(~is_long)
        forms = self._long.numbers.take(codes.take(long))
        np.bitwise_and(entries, np.uint32(_CODE), out=codes)
        return Found(codes, long, forms, kept)

    def excess(self, found: Found) -> NDArray[np.int64]:
        """Return by how much each long form exceeds its limit."""
        return self._long.excess.take(found.forms)

    def spliced(self, found: Found, cut: NDArray[np.bool_] | None = None) -> Expanded:
        """Return what was found with the rest of each long form.

        cut: bool[m], which of the long forms are cut to their limits.
        """
        if not len(found.long):
            return Expanded(found.codes, _NONE, _NONE, found.kept, None)
        pool, begins, lengths = self._long.pieces(found.forms)
        if cut is not None:
            lengths = lengths - self.excess(found) * cut
        if _SPARSE * len(found.long) < len(found.codes):
            codes = replaced(found.codes, found.long, 1, Pieces(pool, begins, lengths))
            return Expanded(codes, found.long + 1, lengths - 1, found.kept, None)
        places = np.ones(len(found.codes), dtype=np.int64)
        places[found.long] = lengths
        total = int(np.cumsum(places, out=places)[-1])
        places[1:] = places[:-1]
        places[0] = 0
        # A form of no code points leaves its place to the next one, or to none.
        codes = np.empty(total + 1, dtype=np.uint32)
        codes[places] = found.codes
        heads = places.take(found.long)
        for place in range(1, int(lengths.max())):
            more = np.flatnonzero(lengths > place)
            codes[heads.take(more) + place] = pool.take(begins.take(more) + place)
        return Expanded(codes[:total], found.long + 1, lengths - 1, found.kept, places)

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
        self._long.add(point, form, self._limit(point) if self._limit else len(form))
        return ord(form[:1] or "\0") | _LONG


class _LongForms:
    """The forms of any number of code points but one, end to end.

    Attributes:
        numbers: uint16[0x110000], the form of each code point.
        excess: int64, by how much each form exceeds its limit.
    """

    def __init__(self) -> None:
        self.numbers = np.zeros(CODE_POINTS, dtype=np.uint16)
        # The first form is the empty one, which thousands of code points have.
        self.excess = self._lengths = self._begins = np.zeros(1, dtype=np.int64)
        self._codes = np.empty(0, dtype=np.uint32)

    def add(self, point: int, form: str, limit: int) -> None:
        """Keep one more."""
        if not form:
            return
        self.numbers[point] = len(self._lengths)
        self.excess = np.append(self.excess, max(len(form) - limit, 0))
        self._lengths = np.append(self._lengths, len(form))
        self._begins = np.append(self._begins, len(self._codes))
        self._codes = np.append(self._codes, code_points(form))

    def pieces(self, forms: NDArray[np.uint16]) -> Pieces:
        """Return these forms."""
        return Pieces(self._codes, self._begins.take(forms), self._lengths.take(forms))
