"""A batch of writes to a store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from rocksdict import WriteBatch

from lsh.index import Decision
from worker.index.keyspace import record_keys

__all__ = ["StoreBatch"]


class StoreBatch:
    """Writes that are applied atomically.

    Attributes:
        writes: RocksDB's batch.
        buckets: the keys, V9[n], of the buckets in it.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self.writes = WriteBatch(raw_mode=True)
        self.buckets: list[npt.NDArray[np.void]] = []

    @classmethod
    def of(cls, decision: Decision) -> StoreBatch:
        """Return the writes that apply a decision."""
        batch = cls()
        batch.put_buckets(decision.keys, decision.buckets)
        batch.put_records(decision.sequences, decision.records)
        return batch

    def put_buckets(self, keys: npt.NDArray[np.void], values: Sequence[bytes]) -> None:
        """Set buckets by their keys, V9[n]."""
        self.buckets.append(keys)
        self._put(keys.tolist(), values)

    def put_records(self, sequences: npt.NDArray[np.uint64], records: Sequence[bytes]) -> None:
        """Set document records."""
        self._put(record_keys(sequences), records)

    def _put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        put = self.writes.put
        for key, value in zip(keys, values, strict=True):
            put(key, value)
