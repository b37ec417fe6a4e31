"""Buckets in a hash table of arrays, some ten bytes each.

Most buckets have one document, so a slot of the table is that document's row, and the key
of the bucket is the document's key. Other buckets have their entries and key elsewhere.
Each column has a table of its own, all of one size. Linear probing, for many keys at a time.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.documents import Documents
    from lsh.index.layout import Bucket

__all__ = ["ENTRY", "BucketTable", "Found"]

ENTRY = np.dtype("<i4")
"""An entry of a packed bucket: a row, or `lsh.index.layout.BEYOND`."""

_EMPTY, _GONE = -1, -2
_SEVERAL = -3
"""The slot of the bucket with several entries that came first; that of the next is one less."""
_LEAST_BITS = 6
_FULL = 0.6  # of the slots of a column
_SPREAD = 0x9E3779B97F4A7C15
_FEW = 64  # keys, of about three documents: for so few, Python is faster than numpy


def _packed(bucket: Bucket) -> bytes:
    return struct.pack(f"<{len(bucket)}i", *bucket)


class Found(NamedTuple):
    """Some of m keys' buckets, as the table has them.

    places: int64[k], the places of these keys among the m, ascending.
    slots: int64[k], where the table has them.
    values: int32[k], a row; or a negative number that `BucketTable.several` takes.
    """

    places: NDArray[np.int64]
    slots: NDArray[np.int64]
    values: NDArray[np.int32]


class BucketTable:
    """The buckets of `Documents`; their entries are rows."""

    def __init__(self, documents: Documents) -> None:
        """Begin without a bucket."""
        self._documents = documents
        self._slots = np.full((documents.columns, 1 << _LEAST_BITS), _EMPTY, np.int32)
        self._used = np.zeros(documents.columns, np.int64)
        self._buckets: list[bytes] = []
        self._hashes = np.zeros(_LEAST_BITS, np.uint64)

    def find(self, columns: NDArray[np.int64], hashes: NDArray[np.uint64]) -> Found:
        """Return the buckets that exist.

        columns: int64[m]. hashes: uint64[m].
        """
        if len(hashes) <= _FEW:
            return self._find_few(columns.tolist(), hashes.tolist())
        flat, width = self._slots.reshape(-1), self._slots.shape[1]
        left, at = np.arange(len(hashes)), self._home(hashes)
        found = []
        while len(left):
            slots = columns[left] * width + at
            values = flat.take(slots)
            same = self._keys_of(columns[left], values) == hashes[left]
            same &= (values >= 0) | (values <= _SEVERAL)
            found.append((left[same], slots[same], values[same]))
            on = ~same & (values != _EMPTY)
            left, at = left[on], (at[on] + 1) & (width - 1)
        places, slots, values = map(np.concatenate, zip(*found, strict=True))
        order = np.argsort(places)
        return Found(places[order], slots[order], values[order])

    def _find_few(self, columns: list[int], hashes: list[int]) -> Found:
        """Return the buckets that exist, one after the other."""
        found = []
        slots, width = self._slots.item, self._slots.shape[1]
        for place, (column, key) in enumerate(zip(columns, hashes, strict=True)):
            at = self._home_of(key)
            while (value := slots(column, at)) != _EMPTY:
                if value != _GONE and self._key_of(column, value) == key:
                    found.append((place, column * width + at, value))
                    break
                at = (at + 1) & (width - 1)
        each = np.array(found, np.int64).reshape(-1, 3)
        return Found(each[:, 0], each[:, 1], each[:, 2].astype(np.int32))

    def bucket(self, value: int) -> Bucket:
        """Return the bucket that a value of `Found` stands for."""
        if value >= 0:
            return [value]
        packed = self._buckets[_SEVERAL - value]
        return [*struct.unpack(f"<{len(packed) // ENTRY.itemsize}i", packed)]

    def several(self, values: NDArray[np.int32]) -> list[bytes]:
        """Return the packed buckets that negative values of `Found` stand for."""
        return [self._buckets[index] for index in (_SEVERAL - values).tolist()]

    def insert(
        self, columns: NDArray[np.int64], hashes: NDArray[np.uint64], rows: NDArray[np.int64]
    ) -> None:
        """Insert m buckets that don't exist, each with the row of a document that has its key."""
        self._make_room(columns)
        self._place(columns, hashes, rows.astype(np.int32))

    def put(
        self, columns: NDArray[np.int64], hashes: NDArray[np.uint64], buckets: list[Bucket]
    ) -> None:
        """Insert or replace m buckets. An empty one is removed."""
        if not buckets:
            return
        found = self.find(columns, hashes)
        slots = dict(zip(found.places.tolist(), found.slots.tolist(), strict=True))
        new = [place for place in range(len(buckets)) if place not in slots and buckets[place]]
        values = np.array([self._kept(int(hashes[at]), buckets[at]) for at in new], np.int32)
        self._replace(found, hashes, buckets)
        self._make_room(columns[new])
        self._place(columns[new], hashes[new], values)

    def _replace(self, found: Found, hashes: NDArray[np.uint64], buckets: list[Bucket]) -> None:
        flat = self._slots.reshape(-1)
        for place, slot, value in zip(*(part.tolist() for part in found), strict=True):
            if not buckets[place]:
                flat[slot] = _GONE
            elif value >= 0:
                flat[slot] = self._kept(int(hashes[place]), buckets[place])
            else:
                self._buckets[_SEVERAL - value] = _packed(buckets[place])

    def _kept(self, key: int, bucket: Bucket) -> int:
        """Keep a bucket outside of the table, and return the value that stands for it."""
        index = len(self._buckets)
        if index == len(self._hashes):
            self._hashes = np.append(self._hashes, np.zeros(index, np.uint64))
        self._hashes[index] = key
        self._buckets.append(_packed(bucket))
        return _SEVERAL - index

    def _home(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return int64[m], where the search for each key begins in its column."""
        bits = self._slots.shape[1].bit_length() - 1
        return ((hashes * np.uint64(_SPREAD)) >> np.uint64(64 - bits)).view(np.int64)

    def _home_of(self, key: int) -> int:
        bits = self._slots.shape[1].bit_length() - 1
        return (key * _SPREAD & 0xFFFFFFFFFFFFFFFF) >> (64 - bits)

    def _key_of(self, column: int, value: int) -> int:
        if value >= 0:
            return self._documents.hash(column, value)
        return int(self._hashes.item(_SEVERAL - value))

    def _keys_of(self, columns: NDArray[np.int64], values: NDArray[np.int32]) -> NDArray[np.uint64]:
        """Return uint64[m], the keys of buckets; of an empty slot, any number."""
        keys = self._documents.hashes(columns, np.maximum(values, 0))
        several = np.flatnonzero(values <= _SEVERAL)
        keys[several] = self._hashes[_SEVERAL - values[several]]
        return keys

    def _make_room(self, columns: NDArray[np.int64]) -> None:
        """Make room for one bucket more in each of these columns."""
        self._used += np.bincount(columns, minlength=len(self._used))
        width = self._slots.shape[1]
        if self._used.max() <= _FULL * width:
            return
        while self._used.max() > _FULL * width:
            width *= 2
        before = self._slots
        self._slots = np.full((len(before), width), _EMPTY, np.int32)
        for column, row in enumerate(before):
            values = row[(row >= 0) | (row <= _SEVERAL)]
            self._used[column] -= np.count_nonzero(row == _GONE)
            same = np.full(len(values), column)
            self._place(same, self._keys_of(same, values), values)

    def _place(
        self,
        columns: NDArray[np.int64],
        hashes: NDArray[np.uint64],
        values: NDArray[np.int32],
    ) -> None:
        """Write values into the first empty slots for their keys, which are not in the table."""
        if len(values) <= _FEW:
            self._place_few(columns.tolist(), hashes.tolist(), values.tolist())
            return
        flat, width = self._slots.reshape(-1), self._slots.shape[1]
        at = self._home(hashes)
        while len(values):
            slots = columns * width + at
            empty = flat.take(slots) == _EMPTY
            flat[slots[empty]] = values[empty]
            # Several of them may have found the same slot: the last one has it.
            lost = ~empty | (flat.take(slots) != values)
            columns, values = columns[lost], values[lost]
            at = (at[lost] + 1) & (width - 1)

    def _place_few(self, columns: list[int], hashes: list[int], values: list[int]) -> None:
        """Write values one after the other."""
        slots, last = self._slots, self._slots.shape[1] - 1
        for column, key, value in zip(columns, hashes, values, strict=True):
            at = self._home_of(key)
            while slots.item(column, at) != _EMPTY:
                at = (at + 1) & last
            slots[column, at] = value
