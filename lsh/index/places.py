"""Where the documents of a batch's buckets are, by their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Places"]

_FEWEST_SLOTS = 1 << 12
_SLOTS_EACH = 4
"""At least so many slots for each number: then one in eight, at most, isn't in its own."""
_FREE = -(1 << 63)
_NONE = -1


class Places:
    """The places of documents by their numbers.

    A number has one slot of a table, by its lowest bits. Those whose slots are taken are elsewhere,
    sorted.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self._numbers = np.full(_FEWEST_SLOTS, _FREE)
        self._at = np.empty(_FEWEST_SLOTS, np.int64)
        self._count = 0
        self._others = self._others_at = np.empty(0, np.int64)

    def of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of documents, int64[e]; -1 if one has none."""
        slots = numbers & (len(self._numbers) - 1)
        same = self._numbers.take(slots) == numbers
        places = np.where(same, self._at.take(slots), _NONE)
        if len(self._others) and not same.all():
            left = np.flatnonzero(~same)
            at = np.minimum(np.searchsorted(self._others, numbers[left]), len(self._others) - 1)
            same = self._others[at] == numbers[left]
            places[left[same]] = self._others_at[at[same]]
        return places

    def add(self, numbers: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        """Add documents that aren't here: int64[k] each."""
        self._count += len(numbers)
        if self._count * _SLOTS_EACH > len(self._numbers):
            kept = np.flatnonzero(self._numbers != _FREE)
            numbers = np.concatenate((self._numbers[kept], self._others, numbers))
            places = np.concatenate((self._at[kept], self._others_at, places))
            room = 1 << (2 * _SLOTS_EACH * self._count).bit_length()
            self._numbers, self._at = np.full(room, _FREE), np.empty(room, np.int64)
            self._others = self._others_at = np.empty(0, np.int64)
        slots = numbers & (len(self._numbers) - 1)
        free = np.flatnonzero(self._numbers.take(slots) == _FREE)
        self._numbers[slots.take(free)] = numbers.take(free)
        put = self._numbers.take(slots) == numbers
        there, left = np.flatnonzero(put), np.flatnonzero(~put)
        self._at[slots.take(there)] = places.take(there)
        if not len(left):
            return
        others = np.concatenate((self._others, numbers.take(left)))
        order = np.argsort(others, kind="stable")  # Two sorted parts are merged.
        self._others = others.take(order)
        self._others_at = np.concatenate((self._others_at, places.take(left))).take(order)
