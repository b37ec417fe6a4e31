"""The storage that an index reads: buckets and documents' records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from lsh.index.layout import Bucket

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from lsh.index.clock import Clock
    from lsh.index.layout import BucketKeys, Renewals
    from lsh.index.records import Records
    from lsh.index.verdicts import Verdict

__all__ = ["BucketReader", "Buckets", "RecordMissing", "spread"]


def spread(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of n ranges, one range after the other: int64[sum of sizes].

    starts, sizes: int64[n].
    """
    before = np.cumsum(sizes) - sizes
    places: NDArray[np.int64] = np.arange(sizes.sum()) + np.repeat(starts - before, sizes)
    return places


class Buckets(Mapping[int, Bucket]):
    """Buckets by place, as a mapping and as arrays.

    None is empty. places: int64[b], ascending. sizes, starts: int64[b], how many entries each
    bucket has, and where they begin. entries: int64[e].
    """

    __slots__ = ("entries", "places", "sizes", "starts")

    def __init__(
        self, places: NDArray[np.int64], sizes: NDArray[np.int64], entries: NDArray[np.int64]
    ) -> None:
        """Take the places, and the sizes and entries of the buckets there."""
        self.places = places
        self.sizes = sizes
        self.starts = np.cumsum(sizes) - sizes
        self.entries = entries

    @classmethod
    def of(cls, found: Mapping[int, Bucket]) -> Buckets:
        """Return these buckets, whose places ascend, without the empty ones."""
        if isinstance(found, Buckets):
            return found
        found = {place: bucket for place, bucket in found.items() if bucket}
        sizes = np.array([len(bucket) for bucket in found.values()], np.int64)
        entries = [entry for bucket in found.values() for entry in bucket]
        return cls(np.array(list(found), np.int64), sizes, np.array(entries, np.int64))

    @classmethod
    def joined(cls, parts: Sequence[Buckets]) -> Buckets:
        """Return the buckets of several, which have different places."""
        places = np.concatenate([part.places for part in parts])
        sizes = np.concatenate([part.sizes for part in parts])
        entries = np.concatenate([part.entries for part in parts])
        return cls(places, sizes, entries).take(np.argsort(places))

    def take(self, chosen: NDArray[np.int64]) -> Buckets:
        """Return some of the buckets: int64[k], indices into ``places``."""
        sizes = self.sizes[chosen]
        entries = self.entries[spread(self.starts[chosen], sizes)]
        return Buckets(self.places[chosen], sizes, entries)

    def lists(self) -> list[Bucket]:
        """Return all buckets, in the order of their places."""
        entries, ends = self.entries.tolist(), self.starts + self.sizes
        cuts = zip(self.starts.tolist(), ends.tolist(), strict=True)
        return [entries[start:end] for start, end in cuts]

    def at(self, chosen: NDArray[np.int64]) -> dict[int, Bucket]:
        """Return some of the buckets by their places.

        chosen: int64[k], indices into ``places``.
        """
        return self.take(chosen).by_place()

    def by_place(self) -> dict[int, Bucket]:
        """Return all buckets by their places, as a dictionary."""
        return dict(zip(self.places.tolist(), self.lists(), strict=True))

    def __getitem__(self, place: int) -> Bucket:
        """Return the bucket at a place; raise KeyError if there is none."""
        at = int(np.searchsorted(self.places, place))
        if at == len(self.places) or self.places[at] != place:
            raise KeyError(place)
        return self.at(np.array([at]))[place]

    def __iter__(self) -> Iterator[int]:
        """Return the places."""
        return iter(self.places.tolist())

    def __len__(self) -> int:
        """Return how many buckets there are."""
        return len(self.places)


class RecordMissing(LookupError):
    """A bucket names a document that has no record: the storage is damaged."""

    def __init__(self, number: int) -> None:
        """Take the document's number in the index."""
        super().__init__(f"a bucket names document {number}, which has no record")
        self.number = number


class BucketReader(Protocol):
    """Looks up buckets and records; `lsh.index.layout` defines the bytes of records."""

    @property
    def inserted(self) -> int:
        """Return how many documents were inserted so far: the number that the next one gets."""

    @property
    def clock(self) -> Clock:
        """Return what the documents so far say about the time."""

    @property
    def moved_below(self) -> int:
        """Return the number below which a renewed document gets another number.

        An index that gives back space by number needs that. Verdicts don't depend on it.
        """

    @property
    def all_kept(self) -> bool:
        """Return whether it is known that no document was ever forgotten."""

    def buckets(self, keys: BucketKeys) -> Mapping[int, Bucket]:
        """Return the buckets that exist, by the places of their keys, ascending.

        keys: sorted by column in the order of the batch, then ascending.
        """

    def may_exist(self, keys: BucketKeys) -> NDArray[np.bool_]:
        """Return which of n buckets may exist: bool[n]. The others don't.

        keys: as of `buckets`.
        """

    def sole(self, keys: BucketKeys) -> NDArray[np.bool_]:
        """Return which of n buckets are known to have had only one document: bool[n].

        Whoever knows that document needn't read them. False may also mean that it isn't known.

        keys: as of `buckets`, of buckets that exist.
        """

    def records(self, numbers: Sequence[int]) -> list[bytes | None]:
        """Return the records of documents by ascending numbers.

        None where there is none; no bytes for a document that was forgotten.
        """

    def recorded(self, numbers: NDArray[np.int64], slots: int) -> Records:
        """Return the records of documents by ascending, different numbers, in arrays: int64[n].

        slots: how many each sketch has.
        """

    def identified(self, ids: Iterable[bytes]) -> dict[bytes, list[int]]:
        """Return the numbers of the documents that have these ids and were not forgotten.

        Ids that no document has are left out.
        """

    def verdicts(self, numbers: Sequence[int]) -> dict[int, Verdict]:
        """Return the verdicts that are stored of those of these documents that have one."""

    def renewals(self, numbers: Sequence[int]) -> dict[int, Renewals]:
        """Return the renewals of those of these documents that have any, by number."""
