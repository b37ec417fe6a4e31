"""Reads buckets: grown ones from keys of their own, all others from the cells of runs.

What a bucket is was written last: by its newest cell, or by the newest era in which it has grown,
whichever is newer. In one era, what it has grown to is newer than its cell.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress

import numpy as np
import numpy.typing as npt

from lsh.index import BucketKeys
from lsh.index.buckets import Buckets, spread
from lsh.index.layout import BEYOND, bucket_lows, entries_of
from worker.index.keyspace import grown_keys
from worker.index.recent_buckets import Grown, RecentBuckets
from worker.index.run_lookup import ErasGrown, Get, RunLookup

__all__ = ["BucketReading", "Standing"]

_KEY_BYTES = 9


class Standing:
    """Which of the buckets that were read have a cell, or have grown, in the current era."""

    def __init__(self) -> None:
        """Begin without any."""
        self._cells: set[bytes] = set()
        self._grown: set[bytes] = set()
        self._in_memory: list[BucketKeys] = []

    def note_cells(self, packed: Iterable[bytes]) -> None:
        """Note buckets that have a cell, by their packed keys."""
        self._cells.update(packed)

    def note_grown(self, packed: Iterable[bytes]) -> None:
        """Note buckets that have grown, by their packed keys."""
        self._grown.update(packed)

    def note_in_memory(self, keys: BucketKeys) -> None:
        """Note buckets that have grown, of which few will be asked for."""
        self._in_memory.append(keys)

    def of(self, keys: BucketKeys) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return which of n buckets have a cell, and which have grown: bool[n] each."""
        some = BucketKeys.joined(self._in_memory)
        asked = np.flatnonzero(np.isin(some.hashes, keys.hashes))
        self._grown.update(some.take(asked).packed())
        packed = keys.packed()
        celled = np.fromiter(map(self._cells.__contains__, packed), bool, len(packed))
        grown = np.fromiter(map(self._grown.__contains__, packed), bool, len(packed))
        return celled, grown


class BucketReading:
    """Reads buckets by their keys."""

    def __init__(self, runs: RunLookup, get: Get, recent: RecentBuckets) -> None:
        """Take the runs, what reads keys of the store, and which grown buckets are in memory."""
        self._runs = runs
        self._get = get
        self._recent = recent
        self._standing = Standing()

    def read(self, keys: BucketKeys, end: int) -> Buckets:
        """Return the buckets that exist, by the places of their keys.

        ``end`` is the number that the next document gets.

        Raises:
            ValueError: a bucket isn't as it was written.
        """
        here, recent = self._recent.get(keys)
        known = self._from_memory(np.flatnonzero(here), keys, recent, end)
        left = np.ones(len(keys.hashes), bool)
        left[known.places] = False
        rest = np.flatnonzero(left)
        stored = self._stored(keys.take(rest), end)
        stored = Buckets(rest[stored.places], stored.sizes, stored.entries)
        return Buckets.joined([known, stored]) if len(known) else stored

    def _from_memory(
        self, places: npt.NDArray[np.int64], keys: BucketKeys, recent: Grown, end: int
    ) -> Buckets:
        """Return the buckets that are in memory and have entries that are kept.

        places: int64[m], those of the buckets in memory.
        """
        eras = self._runs.list.eras
        kept = np.flatnonzero(recent.eras >= eras.kept[0].number)
        if len(kept) < len(places):
            places, recent = places[kept], recent.take(kept)
        self._standing.note_in_memory(keys.take(places[recent.eras == eras.current.number]))
        return self._live(places, recent.sizes, entries_of(recent.lows, end))

    def _stored(self, keys: BucketKeys, end: int) -> Buckets:
        """Return the buckets that exist, of those that aren't in memory."""
        suspects, may_have_grown = self._runs.suspects_grown(keys)
        places = suspects.all_places()
        if not len(places):  # All the rest takes longer than this, also for nothing.
            return Buckets(places, places, places)
        some = keys.take(places)
        packed = some.packed()
        grown = self._grown(packed, may_have_grown.among(places))
        after = np.full(len(keys.hashes), -1)
        after[places] = grown.eras
        alone = self._runs.newest(keys, suspects, after)[places]
        single = (alone >= 0) & (self._runs.list.eras.of_each(alone) > grown.eras)
        self._note(packed, alone, single, grown.eras)
        standing = np.flatnonzero(~single & (grown.eras >= 0))
        self._recent.put(some.take(standing), grown.take(standing))
        return self._kept(places, alone, single, grown, end)

    @property
    def standing(self) -> Standing:
        """Return what is known of the buckets that were read since the last `forget_standing`."""
        return self._standing

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
        self._standing.note_cells(keys.take(sole).packed())
        return sole

    def forget_standing(self) -> None:
        """Begin anew with `standing`, because an era may have begun."""
        self._standing = Standing()

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
        self._standing.note_cells(compress(packed, cells.tolist()))
        self._standing.note_grown(compress(packed, grown.tolist()))

    def _kept(
        self,
        places: npt.NDArray[np.int64],
        alone: npt.NDArray[np.int64],
        single: npt.NDArray[np.bool_],
        grown: Grown,
        end: int,
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
        entries[spread(starts[~single], sizes[~single])] = entries_of(grown.lows[chosen], end)
        return self._live(places, sizes, entries)

    def _live(
        self,
        places: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
        entries: npt.NDArray[np.int64],
    ) -> Buckets:
        """Return the buckets without the entries that are not kept any more."""
        kept = (entries >= self._runs.list.eras.first) | (entries == BEYOND)
        if kept.all() and sizes.all():
            return Buckets(places, sizes, entries)
        starts = np.cumsum(sizes) - sizes
        before = np.concatenate(([0], np.cumsum(kept)))
        left = before[starts + sizes] - before[starts]
        return Buckets(places[left > 0], left[left > 0], entries[kept])

    def _grown(self, packed: list[bytes], may_have: ErasGrown) -> Grown:
        """Return what n buckets grew to in the newest era in which they did; -1: none."""
        places, eras = may_have
        newest, sizes = np.full(len(packed), -1), np.zeros(len(packed), np.int64)
        some = np.array(packed, f"V{_KEY_BYTES}")[places]
        values = self._get(grown_keys(eras, some)) if len(places) else []
        there = np.flatnonzero([value is not None for value in values])
        # The eras of a place ascend, so the last one stays.
        last = np.full(len(packed), -1)
        last[places[there]] = there
        grown = np.flatnonzero(last >= 0)
        newest[grown] = eras[last[grown]]
        sizes[grown], lows = bucket_lows([values[at] or b"" for at in last[grown].tolist()])
        return Grown(newest, sizes, lows)
