"""Corrections as shard 0 keeps them, and the documents for which an allowance holds.

Every correction is in a frame, so it holds from the same document on, whoever judges the frames.
Shard 0 alone keeps corrections and compares all documents with them: its answers say which are
allowed. What the index holds doesn't depend on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import Final, NamedTuple, Self
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt

from lsh._core import near_pairs
from lsh.sketch import estimates
from worker.untrusted import NOT_READ
from worker.wire.corrections import Correction, Kind
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.ids import MOST_ID_BYTES

MOST_ALLOWANCES: Final = 1_000
"""Each document is compared with every allowance, which takes about 15 ns."""
MOST_ERASURES: Final = 1_000
_SUM_BYTES = 4


class Allowed(NamedTuple):
    """The allowance that holds for a document, and how similar that is to the allowed text."""

    id: bytes
    similarity: float


class Allowance(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A text that is never a duplicate.

    ``key`` is that of the exact text, and ``sketch`` uint8[slots]. ``note`` is a packed
    `worker.wire.corrections.Note`. ``since`` is the log's time of the frame with it, in ms.
    """

    id: bytes
    exact: bool
    key: int
    sketch: bytes
    note: bytes
    since: int


def erasure_name(ident: bytes) -> bytes:
    """Return the name of an erasure: a hash, since nothing may be left of the document's id."""
    return b"#" + blake2b(ident, digest_size=8).hexdigest().encode()


class Erasure(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A document that a person had forgotten: the note on that, and the log's time, in ms.

    ``name`` is the `erasure_name` of its id.
    """

    name: bytes
    note: bytes
    since: int


class Corrections(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The allowances that hold, in their order in the log, and the latest erasures."""

    allowances: tuple[Allowance, ...] = ()
    erasures: tuple[Erasure, ...] = ()

    def packed(self) -> bytes:
        """Return the packed bytes, with their checksum."""
        packed = msgspec.msgpack.encode(self)
        return crc32(packed).to_bytes(_SUM_BYTES, "little") + packed

    @classmethod
    def unpacked(cls, packed: bytes | None) -> Self:
        """Return the corrections in packed bytes; without bytes, there are none.

        An allowance with too long an id for a frame is left out: earlier versions took such.

        Raises:
            ValueError: the bytes are something else.
        """
        if packed is None:
            return cls()
        own, rest = packed[:_SUM_BYTES], packed[_SUM_BYTES:]
        if own != crc32(rest).to_bytes(_SUM_BYTES, "little"):
            raise ValueError("its corrections can't be read: they differ from what was written")
        try:
            held = msgspec.msgpack.decode(rest, type=cls)
        except NOT_READ as error:
            raise ValueError(f"its corrections can't be read: {error}") from error
        kept = tuple(known for known in held.allowances if len(known.id) <= MOST_ID_BYTES)
        return cls(kept, held.erasures)

    def at(self, now: int, window: int | None) -> Corrections:
        """Return the corrections that hold at a time of the log; all do without a window. In ms."""
        if window is None or not self.allowances or self.allowances[0].since + window >= now:
            return self
        kept = tuple(known for known in self.allowances if known.since + window >= now)
        return Corrections(kept, self.erasures)

    def after(self, made: Correction, since: int) -> Corrections:
        """Return the corrections after another was made at a time of the log, in ms.

        A later allowance replaces an earlier one with the same id.

        An allowance beyond `MOST_ALLOWANCES` doesn't hold.
        """
        if made.kind is Kind.FORGOTTEN:
            erasures = (*self.erasures, Erasure(erasure_name(made.id), made.note, since))
            return Corrections(self.allowances, erasures[-MOST_ERASURES:])
        kept = tuple(known for known in self.allowances if known.id != made.id)
        if made.allows and len(kept) < MOST_ALLOWANCES:
            exact = made.kind is Kind.EXACT
            kept += (Allowance(made.id, exact, made.key, made.sketch, made.note, since),)
        return Corrections(kept, self.erasures)


NO_CORRECTIONS: Final = Corrections()


class Corrected(NamedTuple):
    """The effect of frames with corrections.

    ``held`` are the corrections after them; None: the same as before. ``allowed`` are the documents
    for which an allowance holds, by their rows, counted through all frames. ``done`` are the
    allowances that hold and the withdrawals of allowances that held, by the frame's offset in the
    log: the offset of each in the frame, and its `erasure_name`. ``refused`` are the ids of
    allowances that don't hold, since too many do.
    """

    held: Corrections | None = None
    allowed: Mapping[int, Allowed] = MappingProxyType({})
    done: Mapping[int, Sequence[tuple[int, bytes]]] = MappingProxyType({})
    refused: Sequence[bytes] = ()


def corrected(
    before: Corrections,
    frames: Iterable[tuple[FingerprintFrame, int, int]],
    *,
    threshold: float,
    window: int | None,
) -> Corrected:
    """Return the corrections after some frames, and which of their documents are allowed.

    Each frame has its offset in the log and the log's time of it, in ms.

    An allowance holds for later documents that are at least ``threshold`` similar, or have the same
    text, until ``window`` ms after it. The most similar one counts; of several, the earliest.
    """
    allowed: dict[int, Allowed] = {}
    done: dict[int, list[tuple[int, bytes]]] = {}
    refused: list[bytes] = []
    base, held = 0, before
    for frame, offset, logged in frames:
        held = held.at(logged, window)
        low = 0
        for made in frame.corrections:
            high = int(np.searchsorted(frame.offsets, made.offset))
            allowed |= _among(held, frame, slice(low, high), threshold, base)
            after, low = held.after(made, logged), high
            if _is_done(made, held, after):
                done.setdefault(offset, []).append((made.offset, erasure_name(made.id)))
            elif made.allows:
                refused.append(made.id)
            held = after
        allowed |= _among(held, frame, slice(low, len(frame.offsets)), threshold, base)
        base += len(frame.offsets)
    return Corrected(None if held is before else held, allowed, done, refused)


def _is_done(made: Correction, before: Corrections, after: Corrections) -> bool:
    """Return whether an allowance holds, or something was withdrawn."""
    if made.allows:
        return bool(after.allowances) and after.allowances[-1].id == made.id
    return len(after.allowances) < len(before.allowances)


def _among(
    held: Corrections, frame: FingerprintFrame, rows: slice, threshold: float, base: int
) -> dict[int, Allowed]:
    """Return the allowed documents among rows of a frame, whose first row is ``base``."""
    found = nearest(held.allowances, frame.texts[rows], frame.sketches[rows], threshold)
    return {base + rows.start + row: allowed for row, allowed in found.items()}


def nearest(
    allowances: Sequence[Allowance],
    texts: npt.NDArray[np.uint64],
    sketches: npt.NDArray[np.uint8],
    threshold: float,
) -> dict[int, Allowed]:
    """Return which of n documents are allowed, by row.

    ``texts`` uint64[n] are the keys of their exact texts, and ``sketches`` uint8[n, slots]. The
    most similar allowance counts; of several, the earliest.
    """
    if not allowances or not len(texts):
        return {}
    found: dict[int, Allowed] = {}
    near = [allowance for allowance in allowances if not allowance.exact]
    if near:
        slots = sketches.shape[1]
        similarity = estimates(slots)
        joined = b"".join(allowance.sketch for allowance in near)
        own = np.frombuffer(joined, np.uint8).reshape(-1, slots)
        least = int(np.searchsorted(similarity, threshold))
        pairs = near_pairs(np.ascontiguousarray(sketches), own, least)
        for row, which, equal in zip(*(column.tolist() for column in pairs), strict=True):
            if row not in found or similarity[equal] > found[row].similarity:
                found[row] = Allowed(near[which].id, float(similarity[equal]))
    keys = {allowance.key: allowance.id for allowance in reversed(allowances)}
    same = np.isin(texts, np.fromiter(keys, np.uint64, len(keys)))
    for row in np.flatnonzero(same).tolist():
        found[row] = Allowed(keys[int(texts[row])], 1.0)
    return found
