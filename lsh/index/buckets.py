"""The storage that an index reads: buckets and documents' records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BucketReader", "RecordMissing"]


class RecordMissing(LookupError):
    """A bucket names a document that has no record: the storage is damaged."""

    def __init__(self, sequence: int) -> None:
        """Take the document's sequence number."""
        super().__init__(f"a bucket names document {sequence}, which has no record")
        self.sequence = sequence


class BucketReader(Protocol):
    """Looks up buckets and records; `lsh.index.layout` defines their bytes."""

    def buckets(self, keys: NDArray[np.void]) -> list[bytes | None]:
        """Return the buckets of ascending keys, V9[n]; None where there is none."""

    def records(self, sequences: Sequence[int]) -> list[bytes | None]:
        """Return the records of ascending sequence numbers; None where there is none."""
