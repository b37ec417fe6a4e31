"""Which documents have an id: a column of the runs that has the newest document of each.

A document with the same id as an earlier one also names that one, so all can be found from the
newest. Two ids with the same hash share a chain; whoever follows it compares the ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

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
        self._followed: dict[int, list[int]] = {}
        self._forgotten: frozenset[int] = frozenset()

    def numbers(self, ids: Iterable[bytes]) -> dict[bytes, list[int]]:
        """Return the documents that have these ids and were not forgotten, newest first.

        Ids that no document has are left out.

        Raises:
            ValueError: something isn't as it was written.
        """
        asked = list(dict.fromkeys(ids))
        if not asked:
            return {}
        keys = _keys(asked)
        hashes = keys.hashes.tolist()
        newest = {
            key: number
            for key, number in zip(hashes, self._newest(keys).tolist(), strict=True)
            if number >= 0
        }
        chains = self._chains(newest)
        self._followed |= {key: [number for number, _ in some] for key, some in chains.items()}
        found: dict[bytes, list[int]] = {}
        for ident, key in zip(asked, hashes, strict=True):
            numbers = [number for number, owner in chains.get(key, ()) if owner == ident]
            if numbers:
                found[ident] = numbers
        return found

    def _chains(self, newest: Mapping[int, int]) -> dict[int, list[tuple[int, bytes]]]:
        """Follow the chains of documents from the newest of each key.

        Returns the numbers and ids of those that were not forgotten, newest first, by key. All
        chains are read at the same time, link by link.
        """
        chains: dict[int, list[tuple[int, bytes]]] = {key: [] for key in newest}
        first, at = self._runs.list.eras.first, dict(newest)
        while at:
            numbers = sorted(set(at.values()))
            records = dict(zip(numbers, self._records.read(numbers), strict=True))
            links = self._get([number_key(PREVIOUS, number) for number in numbers])
            before = {
                number: unpack_number(link)
                for number, link in zip(numbers, links, strict=True)
                if link is not None
            }
            for key, number in at.items():
                if record := records[number]:
                    chains[key].append((number, id_of(record)))
            at = {key: before[n] for key, n in at.items() if before.get(n, -1) >= first}
        return chains

    def forget(self, numbers: Iterable[int]) -> None:
        """Leave out documents that are forgotten in the next `add`."""
        self._forgotten = frozenset(numbers)

    def add(self, batch: WriteBatch, first: int, records: Sequence[bytes]) -> SortedCells:
        """Add new documents to a write; return their cells.

        ``first`` is the number of the first. A cell may take the place of one in the open run.
        Chains that `numbers` has followed since the last call go on with what is left of them, so
        an id that is forgotten and comes again all the time has a short one.
        """
        followed, self._followed = self._followed, {}
        if not records:
            return SortedCells.none()
        keys = _keys(list(map(id_of, records)))
        newest = self._newest(keys)
        last = dict(zip(keys.hashes.tolist(), count(first), strict=False))
        if followed or len(last) < len(records) or newest.max() >= 0:
            last = self._chained(batch, first, keys, newest, followed)
        numbers = np.array(list(last.values()), np.int64)
        return SortedCells(
            self._runs.slots(keys.columns[: len(last)]),
            np.array(list(last), np.uint64),
            (numbers & _LOW).astype(np.uint32),
        )

    def _chained(
        self,
        batch: WriteBatch,
        first: int,
        keys: BucketKeys,
        newest: npt.NDArray[np.int64],
        followed: Mapping[int, list[int]],
    ) -> dict[int, int]:
        """Write which earlier document with the same key each one has; return the last by key."""
        last: dict[int, int] = {}
        for place, (key, stored) in enumerate(
            zip(keys.hashes.tolist(), newest.tolist(), strict=True)
        ):
            before = last.get(key, stored)
            if key in followed and key not in last:
                left = (one for one in followed[key] if one not in self._forgotten)
                before = next(left, -1)
            if before >= 0:
                batch.put(number_key(PREVIOUS, first + place), pack_number(before))
            last[key] = first + place
        return last

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
