"""The ids of a frame's documents, packed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from worker.wire.columns import U16, ColumnError, column, packed

__all__ = ["ID_BYTES", "Ids", "PackedIds"]

ID_BYTES = U16.itemsize
"""The bytes of an id's length, stored in addition to the id."""


class Ids(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Document ids (UTF-8) joined in one buffer; ``lengths`` uint16[n], in bytes."""

    lengths: npt.NDArray[np.uint16]
    data: memoryview

    @classmethod
    def pack(cls, ids: Sequence[bytes]) -> Ids:
        """Pack ids of at most 65,535 bytes each."""
        lengths = np.fromiter(map(len, ids), np.uint16, len(ids))
        return cls(lengths, memoryview(b"".join(ids)))

    def unpack(self) -> list[bytes]:
        """Return the ids as a list."""
        data = self.data.tobytes()
        start = 0
        ids = []
        for end in np.cumsum(self.lengths, dtype=np.int64).tolist():
            ids.append(data[start:end])
            start = end
        return ids

    def packed(self) -> PackedIds:
        """Return the ids in their written form."""
        return PackedIds(packed(self.lengths, U16), self.data)


class PackedIds(msgspec.Struct, array_like=True, frozen=True, gc=False, eq=False):
    """The written form of `Ids`."""

    lengths: memoryview
    data: memoryview

    def ids(self, count: int) -> Ids:
        """Return the ids of ``count`` documents.

        Raises:
            ColumnError: there are more or fewer, or the lengths don't add up to the buffer's.
        """
        lengths = column("ids.lengths", self.lengths, U16, count)
        total = int(np.add.reduce(lengths)) if count else 0
        if total != self.data.nbytes:
            raise ColumnError(f"ids has {self.data.nbytes} bytes, expected {total}")
        return Ids(lengths, self.data)
