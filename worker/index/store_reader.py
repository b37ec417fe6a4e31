"""Reads the buckets and records of a store for queries, beside whoever writes to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lsh.index import BucketKeys
from lsh.index.buckets import Buckets
from lsh.index.clock import Clock
from lsh.index.layout import Renewals, unpack_renewals
from lsh.index.records import Records
from lsh.index.verdicts import Verdict, unpack_verdict
from worker.index.errors import StoreDamaged
from worker.index.identities import Identities
from worker.index.keyspace import RENEWALS, VERDICTS, Range, number_key
from worker.index.reading import BucketReading
from worker.index.recent_buckets import RecentBuckets
from worker.index.record_pages import RecordPages
from worker.index.run_lookup import Get, RunLookup

__all__ = ["StoreReader"]

T = TypeVar("T")


class StoreReader:
    """A `BucketReader` of a store. Make one for each query, and let nobody write meanwhile.

    Several may read at once, and so may whoever judges for the store: all that reading changes is
    which records and buckets are kept for the next one.
    """

    def __init__(  # noqa: PLR0913, PLR0917 -- the parts of a store
        self,
        path: Path,
        runs: RunLookup,
        records: RecordPages,
        get: Get,
        recent: RecentBuckets,
        clock: Clock,
    ) -> None:
        """Take the store's parts; ``clock`` is what its documents say about the time."""
        self.clock = clock
        self._path = path
        self._runs = runs
        self._records = records
        self._get = get
        self._buckets = BucketReading(runs, get, recent)

    @property
    def inserted(self) -> int:
        """Return how many documents were inserted so far; see `BucketReader`."""
        return self._records.inserted

    @property
    def moved_below(self) -> int:
        """Return the first document of the current era; see `BucketReader`."""
        return self._runs.list.eras.current.first

    @property
    def all_kept(self) -> bool:
        """Return whether no document was ever forgotten; see `BucketReader`."""
        return self._records.all_kept

    def buckets(self, keys: BucketKeys) -> Buckets:
        """Return the buckets that exist; see `BucketReader`."""
        try:
            return self._buckets.read(keys, self.inserted)
        except ValueError as error:
            raise self._damaged(error) from error

    def may_exist(self, keys: BucketKeys) -> npt.NDArray[np.bool_]:
        """Return which buckets may exist; see `BucketReader`."""
        return self._buckets.may_exist(keys)

    def sole(self, keys: BucketKeys) -> npt.NDArray[np.bool_]:
        """Return which buckets have had one document only; see `BucketReader`."""
        return self._buckets.sole(keys)

    def records(self, numbers: Sequence[int]) -> list[bytes | None]:
        """Return the records of documents; see `BucketReader`."""
        try:
            return self._records.read(numbers)
        except ValueError as error:
            raise self._damaged(error) from error

    def recorded(self, numbers: npt.NDArray[np.int64], slots: int) -> Records:
        """Return the records of documents in arrays; see `BucketReader`."""
        try:
            return self._records.recorded(numbers, slots)
        except ValueError as error:
            raise self._damaged(error) from error

    def identified(self, ids: Iterable[bytes]) -> dict[bytes, list[int]]:
        """Return the documents that have these ids; see `BucketReader`."""
        try:
            return Identities(self._runs, self._records, self._get).numbers(ids)
        except ValueError as error:
            raise self._damaged(error) from error

    def renewals(self, numbers: Sequence[int]) -> dict[int, Renewals]:
        """Return the renewals of those documents that have any; see `BucketReader`."""
        return self._stored(RENEWALS, numbers, unpack_renewals)

    def verdicts(self, numbers: Sequence[int]) -> dict[int, Verdict]:
        """Return the verdicts of those documents that have one; see `BucketReader`."""
        return self._stored(VERDICTS, numbers, unpack_verdict)

    def _stored(
        self, kind: Range, numbers: Sequence[int], unpack: Callable[[bytes], T]
    ) -> dict[int, T]:
        """Return what is stored of documents, by number, where there is something."""
        packed = self._get([number_key(kind, number) for number in numbers])
        try:
            return {
                number: unpack(value)
                for number, value in zip(numbers, packed, strict=True)
                if value is not None
            }
        except ValueError as error:
            raise self._damaged(error) from error

    def _damaged(self, error: ValueError) -> StoreDamaged:
        return StoreDamaged(f"{self._path}: {error}")
