"""An index in dictionaries, for notebooks and tests."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from lsh.index.clock import Clock
from lsh.index.layout import id_of
from lsh.index.records import Records

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from lsh.index.decision import Decision
    from lsh.index.layout import Bucket, BucketKeys, Renewals
    from lsh.index.verdicts import Verdict

__all__ = ["MemoryIndex"]


class MemoryIndex:
    """Buckets and records in memory. Grows without bound."""

    def __init__(self) -> None:
        """Begin empty."""
        self._buckets: dict[bytes, Bucket] = {}
        self._records: list[bytes] = []
        self._renewals: dict[int, Renewals] = {}
        self._verdicts: dict[int, Verdict] = {}
        self._by_id: dict[bytes, list[int]] = {}
        self.clock = Clock()
        self.moved_below = 0
        self.all_kept = True

    @property
    def inserted(self) -> int:
        """Return how many documents it has; see `BucketReader`."""
        return len(self._records)

    def buckets(self, keys: BucketKeys) -> dict[int, Bucket]:
        """Return the buckets that exist; see `BucketReader`."""
        found = map(self._buckets.get, keys.packed())
        return {place: list(bucket) for place, bucket in enumerate(found) if bucket is not None}

    def may_exist(self, keys: BucketKeys) -> NDArray[np.bool_]:
        """Return all: reading a bucket costs nothing here; see `BucketReader`."""
        return np.ones(len(keys.hashes), bool)

    def sole(self, keys: BucketKeys) -> NDArray[np.bool_]:
        """Return none: reading a bucket costs nothing here; see `BucketReader`."""
        return np.zeros(len(keys.hashes), bool)

    def records(self, numbers: Sequence[int]) -> list[bytes | None]:
        """Return the records of these documents; see `BucketReader`."""
        known = len(self._records)
        return [self._records[number] if number < known else None for number in numbers]

    def recorded(self, numbers: NDArray[np.int64], slots: int) -> Records:
        """Return the records of these documents in arrays; see `BucketReader`."""
        return Records.unpacked(self.records(numbers.tolist()), slots)

    def identified(self, ids: Iterable[bytes]) -> dict[bytes, list[int]]:
        """Return the documents that have these ids; see `BucketReader`."""
        return {ident: list(self._by_id[ident]) for ident in ids if ident in self._by_id}

    def verdicts(self, numbers: Sequence[int]) -> dict[int, Verdict]:
        """Return the verdicts of those documents that have one; see `BucketReader`."""
        return {n: list(self._verdicts[n]) for n in numbers if n in self._verdicts}

    def renewals(self, numbers: Sequence[int]) -> dict[int, Renewals]:
        """Return the renewals of those documents that have any; see `BucketReader`."""
        found = ((number, self._renewals.get(number)) for number in numbers)
        return {number: dict(renewals) for number, renewals in found if renewals is not None}

    def apply(self, decision: Decision) -> None:
        """Apply a decision, which must be the last one made on this index."""
        cells = decision.cells
        for key, number in zip(cells.keys.packed(), cells.documents.tolist(), strict=True):
            self._buckets[key] = [number]
        self._buckets.update(zip(decision.changed.packed(), decision.buckets.lists(), strict=True))
        for number in decision.forgotten:
            self._by_id.pop(id_of(self._records[number]), None)
        for number in decision.forgotten:
            self._records[number] = b""
            self._renewals.pop(number, None)
            self._verdicts.pop(number, None)
        for number, record in enumerate(decision.records, len(self._records)):
            self._by_id.setdefault(id_of(record), []).append(number)
        self._records += decision.records
        self.all_kept = self.all_kept and not decision.forgotten
        self._renewals |= decision.renewals
        self._verdicts |= decision.verdicts
        self.clock = decision.dates.clock

    def items(self) -> Mapping[bytes, Bucket]:
        """Return all buckets by key, as a read-only view."""
        return MappingProxyType(self._buckets)
