"""The grown buckets that were read or written lately.

In a flood, document after document comes to the same buckets. To read one from RocksDB takes longer
than all that is done with it, and so does to find out where it is.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lsh.index import BucketKeys
from lsh.index.buckets import spread
from lsh.ordered import first_of_each, lengths
from worker.index.linear_hashing import half_of, places_of

__all__ = ["Grown", "RecentBuckets"]

_MOST_BYTES = 16 << 20
_WAYS = 4
"""Places for a bucket. With fewer, many would have to go for others while there is room."""
_WIDEST = 64
"""The most entries of a bucket that is kept."""
_FEW = 64
"""Sets at the beginning."""
_EMPTY = -1
_AT_ONCE = 8 << 20
"""By about how many bytes the table grows or shrinks at a time, so that no write takes long."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOWER = np.uint64(16)


class Grown(NamedTuple):
    """What n buckets grew to in the newest era in which they did.

    eras: int64[n]. sizes: int64[n]. lows: uint32[sum of sizes], entries as `pack_buckets` has them.
    """

    eras: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    lows: npt.NDArray[np.uint32]

    def take(self, chosen: npt.NDArray[np.int64]) -> Grown:
        """Return some of the buckets: int64[k]."""
        sizes = self.sizes[chosen]
        starts = np.cumsum(self.sizes) - self.sizes
        return Grown(self.eras[chosen], sizes, self.lows[spread(starts[chosen], sizes)])


class _Table(NamedTuple):
    """Sets of buckets, by set and way.

    hashes: uint64[s, ways]. columns: uint8[s, ways]. eras: int32[s, ways], -1: nothing is here.
    used: int64[s, ways], when it was asked for last; 0: nothing is here. sizes: uint8[s, ways].
    lows: uint32[s, ways, width].
    """

    hashes: npt.NDArray[np.uint64]
    columns: npt.NDArray[np.uint8]
    eras: npt.NDArray[np.int32]
    used: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.uint8]
    lows: npt.NDArray[np.uint32]

    @classmethod
    def empty(cls, sets: int, width: int) -> _Table:
        shape = sets, _WAYS
        return cls(
            np.zeros(shape, np.uint64),
            np.zeros(shape, np.uint8),
            np.full(shape, _EMPTY, np.int32),
            np.zeros(shape, np.int64),
            np.zeros(shape, np.uint8),
            np.zeros((*shape, width), np.uint32),
        )

    @staticmethod
    def set_bytes(width: int) -> int:
        return _WAYS * (8 + 1 + 4 + 8 + 1 + 4 * width)

    @property
    def width(self) -> int:
        width: int = self.lows.shape[2]
        return width

    def sets_of(self, keys: BucketKeys) -> npt.NDArray[np.int64]:
        """Return the set of each key: int64[n]."""
        return places_of(_mixed(keys.columns, keys.hashes), len(self.eras))

    def resize(self, sets: int) -> None:
        """Have so many sets, in place, where malloc can; new ones are empty."""
        former = len(self.eras)
        for part in self:
            part.resize((sets, *part.shape[1:]), refcheck=False)
        self.eras[former:] = _EMPTY

    def widened(self, width: int) -> _Table:
        """Return a table with room for as many entries of a bucket."""
        lows = np.zeros((*self.eras.shape, width), np.uint32)
        lows[:, :, : self.width] = self.lows
        return self._replace(lows=lows)

    def ways_of(self, keys: BucketKeys, sets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return which way each key has in its set: int64[n], -1 if it isn't there."""
        same = self.hashes.take(sets, axis=0) == keys.hashes[:, None]
        same &= self.columns.take(sets, axis=0) == keys.columns[:, None]
        same &= self.eras.take(sets, axis=0) != _EMPTY
        return np.where(same.any(axis=1), same.argmax(axis=1), _EMPTY)

    def oldest_of(self, sets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return a way for something new in each set: int64[n]; different ones in the same set.

        -1 where more is new in a set than it has ways.
        """
        order = np.argsort(sets, kind="stable")
        ordered = sets[order]
        ranks = _ranks(ordered)
        by_age = np.argsort(self.used.take(ordered, axis=0), axis=1, kind="stable")
        ways = np.full(len(sets), _EMPTY)
        fits = ranks < _WAYS
        ways[order[fits]] = by_age[fits, ranks[fits]]
        return ways


class RecentBuckets:
    """Grown buckets by their keys, in about ``most_bytes``.

    A bucket has four places; what was asked for longest ago makes room. Each is what the bucket was
    written as last, so a bucket that is written as something else must be put again, or forgotten.
    Threads may read and add at the same time.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        """Begin empty."""
        self._most = most_bytes
        self._lock = Lock()
        self._table = _Table.empty(0, 0)
        self._count = 0
        self._time = 0

    @property
    def size_bytes(self) -> int:
        """Return how much memory they take."""
        return sum(part.nbytes for part in self._table)

    def limit(self, most_bytes: int) -> None:
        """Take about so much memory from now on.

        Buckets go if it is less than before, a part with each call.
        """
        with self._lock:
            self._most = most_bytes
            if self.size_bytes > most_bytes + min(most_bytes // 4, _AT_ONCE):
                width = self._table.width
                self._shrink(max(self._most_sets(width), len(self._table.eras) - _at_once(width)))

    def get(self, keys: BucketKeys) -> tuple[npt.NDArray[np.bool_], Grown]:
        """Return which of n different buckets are here, bool[n], and these."""
        with self._lock:
            if not self._count:
                nothing = np.empty(0, np.int64)
                return np.zeros(len(keys.hashes), np.bool_), Grown(
                    nothing, nothing, np.empty(0, np.uint32)
                )
            table = self._table
            sets = table.sets_of(keys)
            ways = table.ways_of(keys, sets)
            here = ways != _EMPTY
            at = sets[here], ways[here]
            self._time += 1
            table.used[at] = self._time
            return here, _taken(table, at)

    def put(self, keys: BucketKeys, grown: Grown) -> None:
        """Add n different buckets that were read, or replace them by what is written."""
        if not len(keys.hashes):
            return
        with self._lock:
            self._make_room(grown)
            self._put(keys, grown)

    def _put(self, keys: BucketKeys, grown: Grown) -> None:
        table = self._table
        sets = table.sets_of(keys)
        ways = table.ways_of(keys, sets)
        here, fits = ways != _EMPTY, grown.sizes <= table.width
        self._drop(sets[here & ~fits], ways[here & ~fits])
        self._time += 1
        table.used[sets[here], ways[here]] = self._time
        new = np.flatnonzero(~here & fits)
        ways[new] = table.oldest_of(sets[new])
        new = new[ways[new] != _EMPTY]
        # Nothing makes room that is put, too.
        new = new[table.used[sets[new], ways[new]] != self._time]
        chosen = np.concatenate((np.flatnonzero(here & fits), new))
        at, put = (sets[chosen], ways[chosen]), grown.take(chosen)
        self._count += int(np.count_nonzero(table.eras[at] == _EMPTY))
        table.hashes[at], table.columns[at] = keys.hashes[chosen], keys.columns[chosen]
        table.eras[at], table.sizes[at], table.used[at] = put.eras, put.sizes, self._time
        rows = np.zeros((len(chosen), table.width), np.uint32)
        rows[np.arange(table.width) < put.sizes[:, None]] = put.lows
        table.lows[at] = rows

    def _drop(self, sets: npt.NDArray[np.int64], ways: npt.NDArray[np.int64]) -> None:
        self._table.eras[sets, ways] = _EMPTY
        self._table.used[sets, ways] = 0
        self._count -= len(sets)

    def forget(self, keys: BucketKeys) -> None:
        """Drop buckets, if they are here."""
        with self._lock:
            if self._count and len(keys.hashes):
                sets = self._table.sets_of(keys)
                ways = self._table.ways_of(keys, sets)
                self._drop(sets[ways != _EMPTY], ways[ways != _EMPTY])

    def _make_room(self, more: Grown) -> None:
        """Have the table grow for more buckets, as long as it may."""
        table, added = self._table, len(more.sizes)
        widest = int(more.sizes[more.sizes <= _WIDEST].max(initial=1))
        width = max(table.width, min(_WIDEST, widest))
        most = self._most_sets(width)
        if width > table.width:
            self._shrink(most)
            self._table = self._table.widened(width)
        wanted = min(most, max(_FEW, (self._count + added) * 4 // 5))
        if wanted > len(table.eras):
            self._grow(min(wanted, len(table.eras) + max(_at_once(width), added)))

    def _grow(self, sets: int) -> None:
        """Add sets, and move what belongs there."""
        table = self._table
        if not len(table.eras):
            table.resize(sets)
        while (first := len(table.eras)) < sets:
            half = half_of(first + 1)
            end = min(sets, 2 * half)
            table.resize(end)
            former, new = slice(first - half, end - half), slice(first, end)
            moved = table.eras[former] != _EMPTY
            moved &= _mixed(table.columns[former], table.hashes[former]) & half != 0
            for part in table:
                part[new][moved] = part[former][moved]
            table.eras[former][moved], table.used[former][moved] = _EMPTY, 0

    def _shrink(self, sets: int) -> None:
        """Remove the last sets. Of two that become one, what was asked for last stays."""
        table = self._table
        while (end := len(table.eras)) > sets:
            half = half_of(end)
            first = max(sets, half)
            kept, last = slice(first - half, end - half), slice(first, end)
            used = np.concatenate((table.used[kept], table.used[last]), axis=1)
            newest = np.argsort(-used, axis=1, kind="stable")
            self._count -= int(np.count_nonzero(np.take_along_axis(used, newest, 1)[:, _WAYS:]))
            newest = newest[:, :_WAYS]
            for part in table:
                both = np.concatenate((part[kept], part[last]), axis=1)
                at = newest if part.ndim == newest.ndim else newest[:, :, None]
                part[kept] = np.take_along_axis(both, at, 1)
            table.resize(first)

    def _most_sets(self, width: int) -> int:
        return max(1, self._most // _Table.set_bytes(width))


def _at_once(width: int) -> int:
    """Return how many sets are added or removed at a time."""
    return _AT_ONCE // _Table.set_bytes(width)


def _mixed(columns: npt.NDArray[np.uint8], hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the hashes of keys, each of 32 bits, by which these are spread over the sets."""
    mixed = (hashes + columns) * _SPREAD
    return ((mixed ^ mixed >> _LOWER) >> _HALF).astype(np.int64)


def _ranks(ordered: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return which of its equals each of ascending numbers is: int64[n]."""
    first = np.flatnonzero(first_of_each(ordered))
    ranks: npt.NDArray[np.int64] = np.arange(len(ordered)) - np.repeat(
        first, lengths(first, len(ordered))
    )
    return ranks


def _taken(table: _Table, at: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]) -> Grown:
    """Return the buckets at some sets and ways."""
    sets, ways = at
    places = sets * _WAYS + ways
    sizes = table.sizes.reshape(-1).take(places).astype(np.int64)
    eras = table.eras.reshape(-1).take(places).astype(np.int64)
    # Faster than to index by sets and ways.
    rows = table.lows.reshape(-1, table.width).take(places, axis=0)
    return Grown(eras, sizes, rows[np.arange(table.width) < sizes[:, None]])
