"""The frames of ``fingerprints``: the fingerprints of the documents in a range of offsets."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from worker.wire.columns import (
    I64,
    U8,
    U32,
    U64,
    ColumnError,
    column,
    length,
    packed,
    width,
)
from worker.wire.corrections import Correction
from worker.wire.frame import Frame
from worker.wire.ids import ID_BYTES, Ids, PackedIds
from worker.wire.tombstones import NO_TOMBSTONES, PackedTombstones, Tombstones

__all__ = ["FingerprintFrame", "PackedFingerprints", "document_bytes"]

_SPARE_BYTES = 5
"""A margin for each document, to cover the frame's own bytes."""


class FingerprintFrame(Frame, frozen=True, gc=False, eq=False):
    """The fingerprints of a range with n documents.

    ``offsets`` uint32[n], relative to ``start``; ``times`` int64[n], ms, or `NO_TIME`;
    ``checksums`` uint64[n] of the payloads; ``shingles`` uint32[n], their count; ``texts``
    uint64[n], the keys of the exact texts; ``sketches`` uint8[n, s], from which the keys of the
    bands follow. A decoded frame without documents has s = 0.

    ``accounted`` uint32[r], relative to ``start``, are the offsets of the range that were read but
    not judged: rejected records, tombstones and corrections. *fingerprint* has read no record at
    offsets that are in neither array.

    ``tombstones`` are those of the range that forget an id. ``corrections`` are in the order of
    their offsets.
    """

    offsets: npt.NDArray[np.uint32]
    times: npt.NDArray[np.int64]
    checksums: npt.NDArray[np.uint64]
    ids: Ids
    shingles: npt.NDArray[np.uint32]
    texts: npt.NDArray[np.uint64]
    sketches: npt.NDArray[np.uint8]
    accounted: npt.NDArray[np.uint32]
    tombstones: Tombstones = NO_TOMBSTONES
    corrections: tuple[Correction, ...] = ()

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
            packed(self.texts, U64),
            packed(self.sketches, U8),
            packed(self.accounted, U32),
            self.tombstones.packed() if len(self.tombstones) else None,
            self.corrections,
        )


class PackedFingerprints(Frame, array_like=True, frozen=True, gc=False, eq=False):
    """The written form, version 4."""

    offsets: memoryview
    times: memoryview
    checksums: memoryview
    ids: PackedIds
    shingles: memoryview
    texts: memoryview
    sketches: memoryview
    accounted: memoryview
    tombstones: PackedTombstones | None
    corrections: tuple[Correction, ...] = ()

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
            column("texts", self.texts, U64, count),
            np.ndarray((count, width("sketches", self.sketches, U8, count)), U8, self.sketches),
            column("accounted", self.accounted, U32, length("accounted", self.accounted, U32)),
            NO_TOMBSTONES if self.tombstones is None else self.tombstones.tombstones(),
            self._corrections(),
        )

    def _corrections(self) -> tuple[Correction, ...]:
        """Return the corrections.

        Raises:
            ColumnError: their offsets don't ascend, or are not in the range.
        """
        bounds = [-1, *(one.offset for one in self.corrections), self.end - self.start]
        if any(after <= before for before, after in pairwise(bounds)):
            raise ColumnError("corrections does not ascend within the frame")
        return self.corrections


def document_bytes(slots: int) -> int:
    """Return the bytes of a document in a `FingerprintFrame`, without its id."""
    numbers = 2 * U32.itemsize + I64.itemsize + 2 * U64.itemsize
    return numbers + slots * U8.itemsize + ID_BYTES + _SPARE_BYTES
