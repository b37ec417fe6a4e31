"""Which documents have an id: a column of the runs that has the newest document of each.

A document with the same id as an earlier one also names that one, so all can be found from the
newest. Two ids with the same hash share a chain; whoever follows it compares the ids.
"""

from __future__ import annotations

from collections.abc import Sequence

import mmh3
import numpy as np
import numpy.typing as npt
from rocksdict import WriteBatch

from lsh.index import BucketKeys
from lsh.index.layout import MOST_DOCUMENTS, id_of
from worker.index.keyspace import PREVIOUS, number_key, pack_number, unpack_number
from worker.index.record_pages import RecordPages
from worker.index.run_layout import SortedCells
from worker.index.run_list import ID_COLUMN
from worker.index.run_lookup import Get, RunLookup

__all__ = ["Identities"]

_LOW = MOST_DOCUMENTS - 1


class Identities:
    """The documents of a store by id. Methods raise what ``get`` raises."""

    def __init__(self, runs: RunLookup, records: RecordPages, get: Get) -> None:
        """Take the runs, the records, and what reads keys of the store."""
        self._runs = runs
        self._records = records
        self._get = get

    def numbers(self, ident: bytes) -> list[int]:
        """Return the documents that have an id and were not forgotten, newest first.

        Raises:
            ValueError: something isn't as it was written.
        """
        found = []
        newest = int(self._newest(_keys([ident]))[0])
        number = newest if newest >= 0 else None
        while number is not None and number >= self._runs.list.eras.first:
            (record,) = self._records.read([number])
            if record and id_of(record) == ident:
                found.append(number)
            (previous,) = self._get([number_key(PREVIOUS, number)])
            number = None if previous is None else unpack_number(previous)
        return found

    def add(self, batch: WriteBatch, first: int, records: Sequence[bytes]) -> SortedCells:
        """Add new documents to a write; return their cells.

        ``first`` is the number of the first. A cell may take the place of one in the open run.
        """
        if not records:
            return SortedCells.none()
        keys = _keys(list(map(id_of, records)))
        newest = self._newest(keys).tolist()
        last: dict[int, int] = {}
        for place, key in enumerate(keys.hashes.tolist()):
            before = last.get(key, newest[place])
            if before >= 0:
                batch.put(number_key(PREVIOUS, first + place), pack_number(before))
            last[key] = first + place
        numbers = np.array(list(last.values()), np.int64)
        return SortedCells(
            self._runs.slots(keys.columns[: len(last)]),
            np.array(list(last), np.uint64),
            (numbers & _LOW).astype(np.uint32),
        )

    def _newest(self, keys: BucketKeys) -> npt.NDArray[np.int64]:
        """Return the newest document of each of n keys: int64[n], -1 if there is none."""
        if ID_COLUMN not in self._runs.list.columns:
            return np.full(len(keys.hashes), -1)
        found = self._runs.newest(keys, self._runs.suspects(keys))
        return np.where(found >= self._runs.list.eras.first, found, -1)


def _keys(ids: Sequence[bytes]) -> BucketKeys:
    hashes: npt.NDArray[np.uint64] = np.array(
        [mmh3.mmh3_x64_128_utupledigest(ident, 0)[0] for ident in ids], np.uint64
    )
    return BucketKeys(np.full(len(ids), ID_COLUMN, np.uint8), hashes)
