"""The tombstones of a frame: which ids are forgotten, and where in the order."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Self

import msgspec
import numpy as np
import numpy.typing as npt

from worker.wire.columns import U32, offsets_column, packed
from worker.wire.ids import ID_BYTES, Ids, PackedIds

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
        found = zip(self.offsets.tolist(), self.ids.unpack(), strict=True)
        return self.pack(low, [one for one in found if low <= one[0] < high and one[1] in ids])

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
