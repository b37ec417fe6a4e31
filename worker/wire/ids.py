"""The ids of a frame's documents and tombstones, packed."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import accumulate
from typing import Self

import msgspec
import numpy as np
import numpy.typing as npt

from worker.wire.columns import U8, U16, U32, ColumnError, column, decoded, offsets_column, packed

ID_BYTES = U16.itemsize
"""The bytes of an id's length, stored in addition to the id."""

MOST_ID_BYTES = 1_024
"""The longest id that a frame may have: ``limits.id_bytes`` is at most that."""

_MOST_NAMED_BYTES = 1 << 16
"""What the ids of a document's matches may take together, so that an answer fits a record."""
_ALWAYS_NAMED = _MOST_NAMED_BYTES // MOST_ID_BYTES


def nameable(count: int, ids: Iterable[bytes]) -> int:
    """Return how many of a document's ``count`` matches, best first, an answer names.

    The rule looks at their ids alone, so the best of all shards are the same however many there
    are.
    """
    if count <= _ALWAYS_NAMED:
        return count
    return sum(size <= _MOST_NAMED_BYTES for size in accumulate(map(len, ids)))


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
        if len(decoded("ids", self.data)) < total:  # It isn't ASCII.
            starts = np.cumsum(lengths, dtype=np.int64) - lengths
            first = np.ndarray(total, U8, self.data)[starts[starts < total]]
            if (first & 0xC0 == 0x80).any():  # noqa: PLR2004 -- the bytes within a character
                raise ColumnError("ids divides a character")
        return Ids(lengths, self.data)

    def ids_of_documents(self, count: int) -> Ids:
        """Return the ids of ``count`` documents as *fingerprint* writes them.

        Raises:
            ColumnError: see `ids`; or one is empty or too long.
        """
        found = self.ids(count)
        if count and not 0 < found.lengths.min() <= found.lengths.max() <= MOST_ID_BYTES:
            raise ColumnError(f"ids has an id that is empty, or longer than {MOST_ID_BYTES} bytes")
        return found


TOMBSTONE_BYTES = 2 * U32.itemsize + ID_BYTES
"""The bytes of a tombstone in a frame, without its id: its offset is accounted for as well."""


class Tombstones(msgspec.Struct, frozen=True, gc=False, eq=False):
    """t tombstones in the order of their offsets.

    ``offsets`` uint32[t], relative to the frame's ``start``; ``ids``, the ids that they forget.
    """

    offsets: npt.NDArray[np.uint32]
    ids: Ids

    @classmethod
    def pack(cls, start: int, found: Sequence[tuple[int, bytes]]) -> Self:
        """Pack tombstones, each an offset of ``documents`` and an id."""
        offsets = np.array([offset - start for offset, _ in found], np.uint32)
        return cls(offsets, Ids.pack([ident for _, ident in found]))

    def within(self, low: int, high: int, ids: Container[bytes]) -> Self:
        """Return those of these ids with offsets from ``low`` to ``high``, relative to ``low``."""
        pairs = zip(self.offsets.tolist(), self.ids.unpack(), strict=True)
        return self.pack(
            low,
            [(offset, ident) for offset, ident in pairs if low <= offset < high and ident in ids],
        )

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.offsets)

    def packed(self) -> PackedTombstones:
        """Return the tombstones in their written form."""
        return PackedTombstones(packed(self.offsets, U32), self.ids.packed())


NO_TOMBSTONES = Tombstones.pack(0, ())


class PackedTombstones(msgspec.Struct, array_like=True, frozen=True, gc=False, eq=False):
    """The written form of `Tombstones`."""

    offsets: memoryview
    ids: PackedIds

    def tombstones(self, within: int) -> Tombstones:
        """Return the tombstones of a frame that has ``within`` offsets.

        Raises:
            ColumnError: the offsets don't ascend within the frame, there are more or fewer ids than
                offsets, or see `PackedIds.ids_of_documents`.
        """
        offsets = offsets_column("tombstones.offsets", self.offsets, within)
        return Tombstones(offsets, self.ids.ids_of_documents(len(offsets)))
