"""The storage that an index reads: buckets and documents' records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lsh.index.layout import Bucket, BucketKeys, Renewals
    from lsh.index.verdicts import Verdict

__all__ = ["BucketReader", "RecordMissing"]


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
    def now(self) -> int:
        """Return the latest time of a document so far, in ms."""

    @property
    def moved_below(self) -> int:
        """Return the number below which a renewed document gets another number.

        An index that gives back space by number needs that. Verdicts don't depend on it.
        """

    def buckets(self, keys: BucketKeys) -> Mapping[int, Bucket]:
        """Return the buckets that exist, by the places of their keys, ascending.

        keys: sorted by column in the order of the batch, then ascending.
        """

    def records(self, numbers: Sequence[int]) -> list[bytes | None]:
        """Return the records of documents by ascending numbers.

        None where there is none; no bytes for a document that was forgotten.
        """

    def identified(self, ids: Iterable[bytes]) -> dict[bytes, list[int]]:
        """Return the numbers of the documents that have these ids and were not forgotten.

        Ids that no document has are left out.
        """

    def verdicts(self, numbers: Sequence[int]) -> dict[int, Verdict]:
        """Return the verdicts that are stored of those of these documents that have one."""

    def renewals(self, numbers: Sequence[int]) -> dict[int, Renewals]:
        """Return the renewals of those of these documents that have any, by number."""
