"""Documents in arrays that grow: their keys, sketches and shingle counts, by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Documents"]

_Item = TypeVar("_Item", bound=np.generic)
_LEAST = 64
_GROWTH = 1.25  # the share of the arrays that is empty is at most a fifth


class Documents:
    """Rows are never removed, and the arrays are replaced when they grow."""

    def __init__(self, columns: int, slots: int) -> None:
        """Begin empty, with room for documents of so many keys and slots."""
        self._count = 0
        self._keys = np.zeros((columns, _LEAST), np.uint64)
        self._sketches = np.zeros((_LEAST, slots), np.uint8)
        self._shingles = np.zeros(_LEAST, np.uint32)

    def __len__(self) -> int:
        return self._count

    @property
    def columns(self) -> int:
        """Return how many keys a document has."""
        return len(self._keys)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """Return uint64[columns, n], a view that is valid until `append`."""
        return self._keys[:, : self._count]

    @property
    def sketches(self) -> NDArray[np.uint8]:
        """Return uint8[n, slots], a view that is valid until `append`."""
        return self._sketches[: self._count]

    @property
    def shingles(self) -> NDArray[np.uint32]:
        """Return uint32[n], a view that is valid until `append`."""
        return self._shingles[: self._count]

    def hashes(
        self, columns: NDArray[np.int64], rows: NDArray[np.int64] | NDArray[np.int32]
    ) -> NDArray[np.uint64]:
        """Return uint64[m], the key of each row in the column beside it."""
        return self._keys.reshape(-1).take(columns * self._keys.shape[1] + rows)

    def hash(self, column: int, row: int) -> int:
        """Return the key of one row in a column."""
        return self._keys.item(column, row)

    def append(
        self,
        keys: NDArray[np.uint64],
        sketches: NDArray[np.uint8],
        shingles: NDArray[np.uint32],
    ) -> None:
        """Append m documents.

        keys: uint64[columns, m]. sketches: uint8[m, slots]. shingles: uint32[m].
        """
        begin, end = self._count, self._count + len(shingles)
        if end > len(self._shingles):
            self._grow(max(end, int(_GROWTH * len(self._shingles))))
        self._keys[:, begin:end] = keys
        self._sketches[begin:end] = sketches
        self._shingles[begin:end] = shingles
        self._count = end

    def _grow(self, room: int) -> None:
        # One array after the other, so that only one is in memory twice.
        before, count = self._keys, self._count
        self._keys = np.zeros((len(before), room), np.uint64)
        self._keys[:, :count] = before[:, :count]
        self._sketches = _longer(self._sketches, room)
        self._shingles = _longer(self._shingles, room)


def _longer(array: NDArray[_Item], room: int) -> NDArray[_Item]:
    """Return an array of `room` rows that begins with those of another."""
    longer = np.zeros((room, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
