"""Reads buckets: grown ones from keys of their own, all others from the cells of runs."""

from __future__ import annotations

import numpy as np

from lsh.index import BucketKeys
from lsh.index.layout import Bucket, unpack_bucket
from worker.index.run_lookup import Get, RunLookup

__all__ = ["BucketReading"]


class BucketReading:
    """Reads buckets by their keys."""

    def __init__(self, runs: RunLookup, get: Get) -> None:
        """Take the runs, and what reads keys of the store."""
        self._runs = runs
        self._get = get

    def read(self, keys: BucketKeys) -> dict[int, Bucket]:
        """Return the buckets that exist, by the places of their keys, ascending.

        Raises:
            ValueError: a bucket isn't as it was written.
        """
        suspects = self._runs.suspects(keys)
        places = suspects.all_places()
        if not places:
            return {}
        grown = self._grown(keys, places)
        alone = dict(suspects.known)
        left = [place not in grown and place not in alone for place in suspects.places.tolist()]
        if any(left):
            mask = np.array(left)
            alone |= self._runs.documents(keys, suspects.places[mask], suspects.runs[mask])
        found: dict[int, Bucket] = {}
        for place in places:
            if place in grown:
                found[place] = grown[place]
            elif place in alone:
                found[place] = [alone[place]]
        return found

    def _grown(self, keys: BucketKeys, places: list[int]) -> dict[int, Bucket]:
        suspects = keys.take(np.array(places))
        asked = self._runs.grown(suspects)
        packed = self._get(suspects.take(np.array(asked, np.int64)).packed())
        return {
            places[place]: unpack_bucket(value)
            for place, value in zip(asked, packed, strict=True)
            if value is not None
        }
