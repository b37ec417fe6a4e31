"""The frames of ``matches-p``: a shard's answers for a range of documents."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from worker.wire.columns import (
    F32,
    U16,
    U32,
    U64,
    ColumnError,
    any_column,
    any_packed,
    column,
    length,
    packed,
)
from worker.wire.frame import POSITION_BITS, Frame
from worker.wire.ids import ID_BYTES, Ids, PackedIds
from worker.wire.tombstones import NO_TOMBSTONES, PackedTombstones, Tombstones

__all__ = [
    "CONTAINMENT_BYTES",
    "MATCH_BYTES",
    "MOST_NAMED",
    "NAMED_BYTES",
    "ROW_BYTES",
    "MatchFrame",
    "PackedMatches",
    "PackedWhole",
    "answer_bytes",
]

ROW_BYTES = U32.itemsize + U16.itemsize
"""The bytes of a document that has matches, in a `MatchFrame`."""
MATCH_BYTES = U16.itemsize + F32.itemsize
"""The bytes of each of its matches."""
CONTAINMENT_BYTES = F32.itemsize
"""The bytes that each match takes besides if any match of the frame has a containment."""
NAMED_BYTES = U64.itemsize + ID_BYTES
"""The bytes of a matched document, stored once, without its id."""
MOST_NAMED = 1 << 8 * U16.itemsize
"""The most matched documents that ``which`` can refer to."""


class MatchFrame(Frame, frozen=True, gc=False, eq=False):
    """A shard's answer for a range: the verified matches of the documents that have any.

    ``first`` is the position, in the frame numbered ``number``, of the first document of
    the range. For the m documents with matches, ``matched`` uint32[m] are the offsets, relative to
    ``start``, and ``counts`` uint16[m] the numbers of matches. The matches of all of them follow
    one another in ``which`` uint16 and ``similarities`` float32. ``which`` is an index into the k
    distinct matched documents, ``sequences`` uint64[k] and ``ids``. An id is empty if the document
    was forgotten after the verdict that is given again; see `lsh.index.Match`. The sequence number
    `ALLOWED`, which only shard 0 gives, says that an allowance holds for the document, and the id
    which one. ``containments``
    float32 follow ``similarities``, with 0 for a match that has none. If no match has any, they
    are None.

    ``forgotten`` are the tombstones of the range whose id the shard had a document of. Shard 0 adds
    the allowances that hold and the withdrawals of one that held, with the `erasure_name` of each.

    Shard 0 also forwards ``offsets`` (uint32[n], relative to ``start``) and ``checksums``
    (uint64[n]) of all documents in the range, and ``accounted`` (uint32, see `FingerprintFrame`).
    In the other shards' frames the three arrays are empty. ``forgetting``
    uint32 are those of ``accounted`` that forget a document. *route* passes them on, whether they
    have a value or not. It is None if there are none.
    """

    shard: int
    number: int
    first: int
    offsets: npt.NDArray[np.uint32]
    checksums: npt.NDArray[np.uint64]
    matched: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint16]
    which: npt.NDArray[np.uint16]
    similarities: npt.NDArray[np.float32]
    sequences: npt.NDArray[np.uint64]
    ids: Ids
    accounted: npt.NDArray[np.uint32]
    containments: npt.NDArray[np.float32] | None = None
    forgetting: npt.NDArray[np.uint32] | None = None
    forgotten: Tombstones = NO_TOMBSTONES

    @property
    def sequence(self) -> int:
        """Return the sequence number of the first document of the range."""
        return (self.number << POSITION_BITS) + self.first

    def named(self) -> list[tuple[int, bytes]]:
        """Return the sequence number and id of each matched document."""
        return list(zip(self.sequences.tolist(), self.ids.unpack(), strict=True))

    def packed(self) -> PackedMatches:
        """Return the frame in its written form."""
        without = PackedMatches(
            self.layout,
            self.partition,
            self.start,
            self.end,
            self.shard,
            self.number,
            self.first,
            packed(self.offsets, U32),
            packed(self.checksums, U64),
            packed(self.matched, U32),
            packed(self.counts, U16),
            packed(self.which, U16),
            packed(self.similarities, F32),
            packed(self.sequences, U64),
            self.ids.packed(),
            packed(self.accounted, U32),
        )
        if self.containments is None and self.forgetting is None and not len(self.forgotten):
            return without
        fields = msgspec.structs.asdict(without)
        return PackedWhole(
            **fields,
            containments=any_packed(self.containments, F32),
            forgetting=any_packed(self.forgetting, U32),
            forgotten=self.forgotten.packed() if len(self.forgotten) else None,
        )


class PackedMatches(Frame, array_like=True, frozen=True, gc=False, eq=False):
    """The written form of a frame without containments and tombstones."""

    shard: int
    number: int
    first: int
    offsets: memoryview
    checksums: memoryview
    matched: memoryview
    counts: memoryview
    which: memoryview
    similarities: memoryview
    sequences: memoryview
    ids: PackedIds
    accounted: memoryview

    def frame(self) -> MatchFrame:
        """Return the frame.

        Raises:
            ColumnError: columns that must have the same length differ, ``counts`` doesn't add up
                to the number of matches, or ``which`` is out of range.
        """
        documents = length("offsets", self.offsets, U32)
        matched = length("matched", self.matched, U32)
        named = length("sequences", self.sequences, U64)
        counts = column("counts", self.counts, U16, matched)
        matches = int(np.add.reduce(counts)) if matched else 0
        similarities = column("similarities", self.similarities, F32, matches)
        which = column("which", self.which, U16, matches)
        if matches and (last := int(which.max())) >= named:
            raise ColumnError(f"which points at document {last} of {named}")
        return MatchFrame(
            self.layout,
            self.partition,
            self.start,
            self.end,
            self.shard,
            self.number,
            self.first,
            column("offsets", self.offsets, U32, documents),
            column("checksums", self.checksums, U64, documents),
            column("matched", self.matched, U32, matched),
            counts,
            which,
            similarities,
            column("sequences", self.sequences, U64, named),
            self.ids.ids(named),
            column("accounted", self.accounted, U32, length("accounted", self.accounted, U32)),
        )


class PackedWhole(PackedMatches, array_like=True, frozen=True, gc=False, eq=False):
    """The written form of any frame."""

    containments: memoryview | None = None
    forgetting: memoryview | None = None
    forgotten: PackedTombstones | None = None

    def frame(self) -> MatchFrame:
        """Return the frame.

        Raises:
            ColumnError: see `PackedMatches.frame` and `PackedTombstones.tombstones`.
        """
        frame = super().frame()
        if self.containments is not None:
            shares = column("containments", self.containments, F32, len(frame.which))
            frame = msgspec.structs.replace(frame, containments=shares)
        if self.forgetting is not None:
            forgetting = any_column("forgetting", self.forgetting, U32)
            frame = msgspec.structs.replace(frame, forgetting=forgetting)
        if self.forgotten is not None:
            frame = msgspec.structs.replace(frame, forgotten=self.forgotten.tombstones())
        return frame


def answer_bytes(matches: int, id_bytes: int, *, containment: bool = False) -> int:
    """Return the most bytes that a document's matches take in a `MatchFrame`."""
    each = MATCH_BYTES + NAMED_BYTES + id_bytes + (CONTAINMENT_BYTES if containment else 0)
    return ROW_BYTES + matches * each
