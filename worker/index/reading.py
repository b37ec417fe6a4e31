"""Reads buckets: grown ones from keys of their own, all others from the cells of runs.

What a bucket is was written last: by its newest cell, or by the newest era in which it has grown,
whichever is newer. In one era, what it has grown to is newer than its cell.
"""

from __future__ import annotations

from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lsh.index import BucketKeys
from lsh.index.buckets import Buckets, spread
from lsh.index.layout import BEYOND, unpack_buckets
from worker.index.keyspace import grown_keys
from worker.index.recent_buckets import RecentBuckets
from worker.index.run_lookup import Get, RunLookup

__all__ = ["BucketReading", "Standing"]

_KEY_BYTES = 9


class Standing(NamedTuple):
    """The keys of buckets that have a cell, or have grown, in the current era."""

    cells: set[bytes]
    grown: set[bytes]


class _Grown(NamedTuple):
    """What n buckets grew to in the newest era in which they did.

    eras: int64[n], -1 where a bucket never grew. sizes: int64[n]. entries: int64[sum of sizes].
    """

    eras: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    entries: npt.NDArray[np.int64]


class BucketReading:
    """Reads buckets by their keys.

    ``standing`` is about the buckets that were looked up since the last `forget_standing`.
    """

    def __init__(self, runs: RunLookup, get: Get, recent: RecentBuckets) -> None:
        """Take the runs, what reads keys of the store, and which grown buckets are in memory."""
        self._runs = runs
        self._get = get
        self._recent = recent
        self.standing = Standing(set(), set())

    def read(self, keys: BucketKeys, end: int) -> Buckets:
        """Return the buckets that exist, by the places of their keys.

        ``end`` is the number that the next document gets.

        Raises:
            ValueError: a bucket isn't as it was written.
        """
        suspects = self._runs.suspects(keys)
        places = suspects.all_places()
        if not len(places):  # All the rest takes longer than this, also for nothing.
            return Buckets(places, places, places)
        some = keys.take(places)
        packed = some.packed()
        grown = self._grown(some, packed, end)
        after = np.full(len(keys.hashes), -1)
        after[places] = grown.eras
        alone = self._runs.newest(keys, suspects, after)[places]
        single = (alone >= 0) & (self._runs.list.eras.of_each(alone) > grown.eras)
        self._note(packed, alone, single, grown.eras)
        return self._kept(places, alone, single, grown)

    def may_exist(self, keys: BucketKeys) -> npt.NDArray[np.bool_]:
        """Return which buckets may exist: bool[n]."""
        may = np.zeros(len(keys.hashes), bool)
        may[self._runs.suspects(keys).all_places()] = True
        return may

    def sole(self, keys: BucketKeys) -> npt.NDArray[np.bool_]:
        """Return which buckets have a cell, and have surely not grown: bool[n].

        Keys are those of buckets of documents of the current era.
        """
        sole = np.ones(len(keys.hashes), bool)
        grown, _ = self._runs.eras_grown(keys)
        sole[grown] = False
        self.standing.cells.update(keys.take(sole).packed())
        return sole

    def forget_standing(self) -> None:
        """Begin anew with `standing`, because an era may have begun."""
        self.standing = Standing(set(), set())

    def _note(
        self,
        packed: list[bytes],
        alone: npt.NDArray[np.int64],
        single: npt.NDArray[np.bool_],
        eras: npt.NDArray[np.int64],
    ) -> None:
        """Note which buckets stand in the current era."""
        current = self._runs.list.eras.current
        cells = single & (alone >= current.first)
        grown = ~single & (eras == current.number)
        self.standing.cells.update(compress(packed, cells.tolist()))
        self.standing.grown.update(compress(packed, grown.tolist()))

    def _kept(
        self,
        places: npt.NDArray[np.int64],
        alone: npt.NDArray[np.int64],
        single: npt.NDArray[np.bool_],
        grown: _Grown,
    ) -> Buckets:
        """Return the buckets with the entries that are kept.

        alone: int64[s], the documents of the newest cells. single: bool[s], whether these are all
        that their buckets have.
        """
        sizes = np.where(single, 1, grown.sizes)
        starts = np.cumsum(sizes) - sizes
        entries = np.empty(sizes.sum(), np.int64)
        entries[starts[single]] = alone[single]
        chosen = np.repeat(~single, grown.sizes)
        entries[spread(starts[~single], sizes[~single])] = grown.entries[chosen]
        kept = (entries >= self._runs.list.eras.first) | (entries == BEYOND)
        before = np.concatenate(([0], np.cumsum(kept)))
        left = before[starts + sizes] - before[starts]
        return Buckets(places[left > 0], left[left > 0], entries[kept])

    def _grown(self, keys: BucketKeys, packed: list[bytes], end: int) -> _Grown:
        """Return what buckets grew to in the newest era in which they did."""
        places, eras = self._runs.eras_grown(keys)
        some = np.array(packed, f"V{_KEY_BYTES}")[places]
        values = self._values(grown_keys(eras, some))
        there = np.flatnonzero([value is not None for value in values])
        newest, sizes = np.full(len(packed), -1), np.zeros(len(packed), np.int64)
        # The eras of a place ascend, so the last one stays.
        last = np.full(len(packed), -1)
        last[places[there]] = there
        grown = np.flatnonzero(last >= 0)
        newest[grown] = eras[last[grown]]
        kept = [values[at] or b"" for at in last[grown].tolist()]
        sizes[grown], entries = unpack_buckets(kept, end)
        return _Grown(newest, sizes, entries)

    def _values(self, keys: list[bytes]) -> list[bytes | None]:
        """Return what is stored of grown buckets; None where nothing is."""
        values = self._recent.get(keys)
        missing = [place for place, value in enumerate(values) if value is None]
        if missing:
            wanted = [keys[place] for place in missing]
            read = self._get(wanted)
            for place, value in zip(missing, read, strict=True):
                values[place] = value
            self._recent.put((key, value) for key, value in zip(wanted, read, strict=True) if value)
        return values
