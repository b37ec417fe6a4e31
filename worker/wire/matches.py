"""The frames of ``matches-p``: a shard's answers for a range of documents."""

from __future__ import annotations

from typing import Self

import msgspec
import numpy as np
import numpy.typing as npt

from worker.wire.columns import (
    F32,
    U16,
    U32,
    U64,
    ColumnError,
    any_packed,
    column,
    length,
    offsets_column,
    packed,
)
from worker.wire.frame import POSITION_BITS, Frame
from worker.wire.ids import ID_BYTES, NO_TOMBSTONES, Ids, PackedIds, PackedTombstones, Tombstones

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
_NUMBERS = 1 << 64 - POSITION_BITS


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

    ``refused`` says why the range has no verdicts: its frame, or this answer, can't be carried out.
    ``accounted`` then are documents that *fingerprint* has rejected.

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
    refused: str | None = None

    @classmethod
    def nothing(cls, frame: Frame, shard: int, refused: str | None = None) -> Self:
        """Return an answer that names no document, for the range of a frame."""
        none = {dtype: np.empty(0, dtype) for dtype in (F32, U16, U32, U64)}
        return cls(
            frame.layout,
            frame.partition,
            frame.start,
            frame.end,
            shard,
            0,
            0,
            offsets=none[U32],
            checksums=none[U64],
            matched=none[U32],
            counts=none[U16],
            which=none[U16],
            similarities=none[F32],
            sequences=none[U64],
            ids=Ids.pack(()),
            accounted=none[U32],
            refused=refused,
        )

    @property
    def sequence(self) -> int:
        """Return the sequence number of the first document of the range."""
        return (self.number << POSITION_BITS) + self.first

    def named(self) -> list[tuple[int, bytes]]:
        """Return the sequence number and id of each matched document."""
        return list(zip(self.sequences.tolist(), self.ids.unpack(), strict=True))

    def packed(self) -> PackedMatches:
        """Return the frame in its written form."""
        return PackedMatches(
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
            any_packed(self.containments, F32),
            any_packed(self.forgetting, U32),
            self.forgotten.packed() if len(self.forgotten) else None,
            self.refused,
        )


class PackedMatches(Frame, array_like=True, frozen=True, gc=False, eq=False):
    """The written form. Fields at the end that most frames lack are left out."""

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
    containments: memoryview | None = None
    forgetting: memoryview | None = None
    forgotten: PackedTombstones | None = None
    refused: str | None = None

    def written(self) -> tuple[object, ...]:
        """Return the fields that are written."""
        fields = msgspec.structs.astuple(self)
        if self.refused is not None:
            return fields
        optional = self.containments, self.forgetting, self.forgotten
        return fields[: -1 if any(field is not None for field in optional) else -4]

    def frame(self) -> MatchFrame:
        """Return the frame.

        Raises:
            ColumnError: columns that must have the same length differ, ``counts`` doesn't add up
                to the number of matches, or a value is out of range. See also
                `PackedTombstones.tombstones`.
        """
        within = self.end - self.start
        offsets = offsets_column("offsets", self.offsets, within)
        documents = len(offsets)
        if not (0 <= self.number < _NUMBERS and 0 <= self.first <= (1 << POSITION_BITS)):
            raise ColumnError("number or first is no number of a document")
        of_matched = offsets_column("matched", self.matched, within)
        matched = len(of_matched)
        named = length("sequences", self.sequences, U64)
        counts = column("counts", self.counts, U16, matched)
        if matched and not counts.min():
            raise ColumnError("counts has a document without matches")
        matches = int(np.add.reduce(counts)) if matched else 0
        similarities = _shares("similarities", self.similarities, matches)
        which = column("which", self.which, U16, matches)
        if matches and (last := int(which.max())) >= named:
            raise ColumnError(f"which points at document {last} of {named}")
        containments = self.containments
        forgetting = self.forgetting
        return MatchFrame(
            self.layout,
            self.partition,
            self.start,
            self.end,
            self.shard,
            self.number,
            self.first,
            offsets,
            column("checksums", self.checksums, U64, documents),
            of_matched,
            counts,
            which,
            similarities,
            column("sequences", self.sequences, U64, named),
            self.ids.ids(named),
            offsets_column("accounted", self.accounted, within),
            None if containments is None else _shares("containments", containments, matches),
            None if forgetting is None else offsets_column("forgetting", forgetting, within),
            NO_TOMBSTONES if self.forgotten is None else self.forgotten.tombstones(within),
            self.refused,
        )

    def rejected(self) -> None:
        """Return that nobody can tell which documents *fingerprint* has rejected."""


def _shares(name: str, data: memoryview, count: int) -> npt.NDArray[np.float32]:
    """Return a column of shares.

    Raises:
        ColumnError: it has more or fewer, or one isn't from 0 to 1.
    """
    shares = column(name, data, F32, count)
    if not ((shares >= 0) & (shares <= 1)).all():
        raise ColumnError(f"{name} has a value that isn't from 0 to 1")
    return shares


def answer_bytes(matches: int, id_bytes: int, *, containment: bool = False) -> int:
    """Return the most bytes that a document's matches take in a `MatchFrame`."""
    each = MATCH_BYTES + NAMED_BYTES + id_bytes + (CONTAINMENT_BYTES if containment else 0)
    return ROW_BYTES + matches * each
