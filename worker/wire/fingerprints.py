"""The frames of ``fingerprints``: the fingerprints of the documents in a range of offsets."""

from __future__ import annotations

from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt

from lsh.index import NO_TIME
from worker.wire.columns import (
    I64,
    U8,
    U32,
    U64,
    ColumnError,
    among,
    column,
    offsets_column,
    packed,
    width,
)
from worker.wire.corrections import Correction
from worker.wire.frame import ACCOUNTED_OFFSETS, FRAME_BYTES, POSITION_BITS, Frame
from worker.wire.ids import (
    ID_BYTES,
    NO_TOMBSTONES,
    TOMBSTONE_BYTES,
    Ids,
    PackedIds,
    PackedTombstones,
    Tombstones,
)

_SPARE_BYTES = 5
"""A margin for each document, to cover the frame's own bytes."""

_FIRST_TIME = NO_TIME + (1 << 62)
"""The index has other uses for what is before that, except for `NO_TIME`."""

_U32 = 1 << 32

_MOST_HANDED_ON = FRAME_BYTES + ACCOUNTED_OFFSETS * U32.itemsize
"""The most bytes that answers repeat of a frame. The matches of one document fit a record beside
it."""


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

    @classmethod
    def nothing(cls, frame: Frame, accounted: npt.NDArray[np.uint32]) -> Self:
        """Return a frame of the same range without documents; ``accounted`` as in the class."""
        none = {dtype: np.empty(0, dtype) for dtype in (I64, U32, U64)}
        return cls(
            frame.layout,
            frame.partition,
            frame.start,
            frame.end,
            none[U32],
            none[I64],
            none[U64],
            Ids.pack(()),
            none[U32],
            none[U64],
            np.empty((0, 0), np.uint8),
            accounted,
        )

    @property
    def handed_on(self) -> int:
        """Return how many bytes of it an answer of shard 0 repeats."""
        tombstones = self.tombstones
        beside = len(tombstones) * TOMBSTONE_BYTES + tombstones.ids.data.nbytes
        return beside + self.checksums.nbytes + self.offsets.nbytes + self.accounted.nbytes

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

    def written(self) -> Self:
        """Return what is written: all fields."""
        return self

    def frame(self) -> FingerprintFrame:
        """Return the frame, which every shard can carry out.

        Raises:
            ColumnError: a column doesn't fit the number of documents, which ``offsets`` gives, or
                has what no shard could judge, answer or keep.
        """
        within = self.end - self.start
        offsets = offsets_column("offsets", self.offsets, within)
        count = len(offsets)
        if count > 1 << POSITION_BITS:
            raise ColumnError(f"offsets has {count} documents, more than have numbers")
        times = column("times", self.times, I64, count)
        early = times < _FIRST_TIME
        if early.any() and (times[early] != NO_TIME).any():
            raise ColumnError("times has a time that the index can't keep")
        tombstones = NO_TOMBSTONES
        if self.tombstones is not None:
            tombstones = self.tombstones.tombstones(within)
        frame = FingerprintFrame(
            self.layout,
            self.partition,
            self.start,
            self.end,
            offsets,
            times,
            column("checksums", self.checksums, U64, count),
            self.ids.ids_of_documents(count),
            column("shingles", self.shingles, U32, count),
            column("texts", self.texts, U64, count),
            np.ndarray((count, width("sketches", self.sketches, U8, count)), U8, self.sketches),
            self._accounted(offsets)[0],
            tombstones,
            self.corrections,
        )
        for correction in self.corrections:
            correction.check()
        if frame.handed_on > _MOST_HANDED_ON:
            raise ColumnError(f"accounted has {len(frame.accounted)} offsets, too many to answer")
        return frame

    def rejected(self) -> npt.NDArray[np.uint32] | None:
        """Return which of ``accounted`` neither forgets nor corrects: *fingerprint* rejected it.

        None if what the frame says of its offsets is contradictory, so that nothing is believed.
        """
        within = self.end - self.start
        try:
            offsets = offsets_column("offsets", self.offsets, within)
            accounted, rejected = self._accounted(offsets)
        except ColumnError:
            return None
        return rejected if accounted.nbytes <= _MOST_HANDED_ON else None

    def _accounted(
        self, offsets: npt.NDArray[np.uint32]
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """Return the column, and which of it neither forgets nor corrects; ``offsets`` are judged.

        Raises:
            ColumnError: an offset is accounted for and judged, or forgets or corrects without that.
        """
        within = self.end - self.start
        accounted = offsets_column("accounted", self.accounted, within)
        if among(accounted, offsets).any():
            raise ColumnError("accounted has offsets of documents")
        corrected = [correction.offset for correction in self.corrections]
        if any(after <= before for before, after in pairwise([-1, *corrected, min(within, _U32)])):
            raise ColumnError("corrections does not ascend within the frame")
        others = {"corrections": np.array(corrected, U32)}
        if self.tombstones is not None:
            name = "tombstones.offsets"
            others[name] = offsets_column(name, self.tombstones.offsets, within)
        rejected = accounted
        for name, named in others.items():
            if not among(named, accounted).all():
                raise ColumnError(f"{name} has offsets that are not accounted for")
            if len(named):
                rejected = rejected[~among(rejected, named)]
        return accounted, rejected


def document_bytes(slots: int) -> int:
    """Return the bytes of a document in a `FingerprintFrame`, without its id."""
    numbers = 2 * U32.itemsize + I64.itemsize + 2 * U64.itemsize
    return numbers + slots * U8.itemsize + ID_BYTES + _SPARE_BYTES
