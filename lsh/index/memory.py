"""An index in dictionaries, for notebooks and tests."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from lsh.index.decide import Decision

__all__ = ["MemoryIndex"]


class MemoryIndex:
    """Buckets and records in memory. Grows without bound."""

    def __init__(self) -> None:
        """Begin empty."""
        self._buckets: dict[bytes, bytes] = {}
        self._records: dict[int, bytes] = {}

    def buckets(self, keys: NDArray[np.void]) -> list[bytes | None]:
        """Return the buckets of these keys, V9[n]; see `BucketReader`."""
        return list(map(self._buckets.get, keys.tolist()))

    def records(self, sequences: Sequence[int]) -> list[bytes | None]:
        """Return the records of these documents; see `BucketReader`."""
        return list(map(self._records.get, sequences))

    def apply(self, decision: Decision) -> None:
        """Apply a decision, which must be the last one made on this index."""
        self._buckets.update(zip(decision.keys.tolist(), decision.buckets, strict=True))
        self._records.update(zip(decision.sequences.tolist(), decision.records, strict=True))

    def items(self) -> Mapping[bytes, bytes]:
        """Return all buckets by key, as a read-only view."""
        return MappingProxyType(self._buckets)
