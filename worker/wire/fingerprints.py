"""The frames of ``fingerprints``: the fingerprints of the documents in a range of offsets."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from worker.wire.columns import (
    I64,
    U8,
    U32,
    U64,
    any_column,
    any_packed,
    column,
    length,
    packed,
    width,
)
from worker.wire.frame import Frame
from worker.wire.ids import ID_BYTES, Ids, PackedIds
from worker.wire.tombstones import NO_TOMBSTONES, PackedTombstones, Tombstones

__all__ = ["FingerprintFrame", "PackedFingerprints", "PackedFingerprints1", "document_bytes"]

_SPARE_BYTES = 5
"""A margin for each document, to cover the frame's own bytes."""


class FingerprintFrame(Frame, frozen=True, gc=False, eq=False):
    """The fingerprints of a range with n documents.

    ``offsets`` uint32[n], relative to ``start``; ``times`` int64[n], ms; ``checksums``
    uint64[n] of the payloads; ``shingles`` uint32[n], their count; ``keys`` uint64[c, n]: a key
    for each band, then the exact text's; ``sketches`` uint8[n, s]. A decoded frame without
    documents has c = s = 0.

    ``accounted`` uint32[r], relative to ``start``, are the offsets of the range that were read but
    not judged: rejected records and tombstones. *fingerprint* has read no record at offsets that
    are in neither array. ``accounted`` is None in frames of older workers.

    ``tombstones`` are those of the range that forget an id. Frames of older workers have none.
    """

    offsets: npt.NDArray[np.uint32]
    times: npt.NDArray[np.int64]
    checksums: npt.NDArray[np.uint64]
    ids: Ids
    shingles: npt.NDArray[np.uint32]
    keys: npt.NDArray[np.uint64]
    sketches: npt.NDArray[np.uint8]
    accounted: npt.NDArray[np.uint32] | None = None
    tombstones: Tombstones = NO_TOMBSTONES

    def packed(self) -> PackedFingerprints:
        """Return the frame in its written form."""
        return PackedFingerprints(
            self.layout,
            self.partition,
            self.start,
            self.end,
            packed(self.offsets, U32),
            packed(self.times, I64),
            packed(self.checksums, U64),
            self.ids.packed(),
            packed(self.shingles, U32),
            packed(self.keys, U64),
            packed(self.sketches, U8),
            any_packed(self.accounted, U32),
            self.tombstones.packed() if len(self.tombstones) else None,
        )


class PackedFingerprints(Frame, array_like=True, frozen=True, gc=False, eq=False):
    """The written form, version 2."""

    offsets: memoryview
    times: memoryview
    checksums: memoryview
    ids: PackedIds
    shingles: memoryview
    keys: memoryview
    sketches: memoryview
    accounted: memoryview | None
    tombstones: PackedTombstones | None

    def frame(self) -> FingerprintFrame:
        """Return the frame.

        Raises:
            ColumnError: a column doesn't fit the number of documents, which ``offsets`` gives.
        """
        count = length("offsets", self.offsets, U32)
        return FingerprintFrame(
            self.layout,
            self.partition,
            self.start,
            self.end,
            column("offsets", self.offsets, U32, count),
            column("times", self.times, I64, count),
            column("checksums", self.checksums, U64, count),
            self.ids.ids(count),
            column("shingles", self.shingles, U32, count),
            np.ndarray((width("keys", self.keys, U64, count), count), U64, self.keys),
            np.ndarray((count, width("sketches", self.sketches, U8, count)), U8, self.sketches),
            any_column("accounted", self.accounted, U32),
            NO_TOMBSTONES if self.tombstones is None else self.tombstones.tombstones(),
        )


class PackedFingerprints1(Frame, array_like=True, frozen=True, gc=False, eq=False):
    """The written form, version 1. It doesn't name the tombstones."""

    offsets: memoryview
    times: memoryview
    checksums: memoryview
    ids: PackedIds
    shingles: memoryview
    keys: memoryview
    sketches: memoryview
    accounted: memoryview | None = None

    def frame(self) -> FingerprintFrame:
        """Return the frame, without tombstones.

        Raises:
            ColumnError: see `PackedFingerprints.frame`.
        """
        return PackedFingerprints(**msgspec.structs.asdict(self), tombstones=None).frame()


def document_bytes(columns: int, slots: int) -> int:
    """Return the bytes of a document in a `FingerprintFrame`, without its id."""
    fixed = U32.itemsize + I64.itemsize + U64.itemsize + U32.itemsize + ID_BYTES + _SPARE_BYTES
    return fixed + columns * U64.itemsize + slots * U8.itemsize
