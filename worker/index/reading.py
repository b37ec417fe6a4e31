"""Reads buckets: grown ones from keys of their own, all others from the cells of runs.

What a bucket is was written last: by its newest cell, or by the newest era in which it has grown,
whichever is newer. In one era, what it has grown to is newer than its cell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lsh.index import BucketKeys
from lsh.index.layout import BEYOND, Bucket, unpack_bucket
from worker.index.keyspace import grown_key
from worker.index.run_lookup import Get, RunLookup, Suspects

__all__ = ["BucketReading", "Standing"]


class Standing(NamedTuple):
    """The keys of buckets that have a cell, or have grown, in the current era."""

    cells: set[bytes]
    grown: set[bytes]


class _Grown(NamedTuple):
    era: int
    bucket: Bucket


class BucketReading:
    """Reads buckets by their keys.

    ``standing`` is about the buckets that were looked up since the last `forget_standing`.
    """

    def __init__(self, runs: RunLookup, get: Get) -> None:
        """Take the runs, and what reads keys of the store."""
        self._runs = runs
        self._get = get
        self.standing = Standing(set(), set())

    def read(self, keys: BucketKeys, end: int) -> dict[int, Bucket]:
        """Return the buckets that exist, by the places of their keys, ascending.

        ``end`` is the number that the next document gets.

        Raises:
            ValueError: a bucket isn't as it was written.
        """
        suspects = self._runs.suspects(keys)
        places = suspects.all_places()
        if not places:
            return {}
        packed = dict(zip(places, keys.take(np.array(places)).packed(), strict=True))
        grown = self._grown(keys, packed, end)
        alone = suspects.known | self._alone(keys, suspects, grown)
        first, current = self._runs.list.eras.first, self._runs.list.eras.current
        found: dict[int, Bucket] = {}
        for place in places:
            number = alone.get(place)
            if place in grown and (number is None or not self._later(number, grown[place].era)):
                era, bucket = grown[place]
                kept = [one for one in bucket if one >= first or one == BEYOND]
                if kept:
                    found[place] = kept
                if era == current.number:
                    self.standing.grown.add(packed[place])
            elif number is not None and number >= first:
                found[place] = [number]
                if number >= current.first:
                    self.standing.cells.add(packed[place])
        return found

    def forget_standing(self) -> None:
        """Begin anew with `standing`, because an era may have begun."""
        self.standing = Standing(set(), set())

    def _later(self, number: int, era: int) -> bool:
        """Return whether a document was inserted after an era."""
        return self._runs.list.eras.of(number) > era

    def _grown(self, keys: BucketKeys, packed: dict[int, bytes], end: int) -> dict[int, _Grown]:
        """Return what buckets grew to in the newest era in which they did."""
        places = list(packed)
        asked = self._runs.eras_grown(keys.take(np.array(places)))
        wanted = [(places[place], era) for place, eras in asked.items() for era in eras]
        values = self._get([grown_key(era, packed[place]) for place, era in wanted])
        # The eras of a place ascend, so the last one stays.
        return {
            place: _Grown(era, unpack_bucket(value, end))
            for (place, era), value in zip(wanted, values, strict=True)
            if value is not None
        }

    def _alone(
        self, keys: BucketKeys, suspects: Suspects, grown: dict[int, _Grown]
    ) -> dict[int, int]:
        """Return the document of the newest cell of each bucket, where that can matter."""
        left = suspects.by_place()
        for place in grown.keys() & left.keys():
            left[place] = self._runs.later(left[place], grown[place].era)
        return self._runs.newest(keys, left)
