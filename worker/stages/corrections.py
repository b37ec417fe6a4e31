"""What people have corrected, as shard 0 keeps it, and which documents an allowance holds for.

Every correction is in a frame, so it holds from the same document on, whoever judges the frames.
Shard 0 alone keeps corrections and compares all documents with them: its answers say which are
allowed. What the index holds doesn't depend on them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, Self
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt

from lsh._core import near_pairs
from lsh.sketch import estimates
from worker.stages.order import Placed
from worker.wire import Correction, FingerprintFrame, Kind

__all__ = [
    "MOST_ALLOWANCES",
    "NO_CORRECTIONS",
    "Allowance",
    "Allowed",
    "Corrections",
    "Erasure",
    "allowed",
    "erasure_name",
    "nearest",
]

_log = logging.getLogger(__name__)

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
    `worker.wire.Note`. ``since`` is the log's time of the frame with it, in ms.
    """

    id: bytes
    exact: bool
    key: int
    sketch: bytes
    note: bytes
    since: int


def erasure_name(ident: bytes) -> bytes:
    """Return what an erasure is called by: a hash, since nothing may be left of the id."""
    return b"#" + blake2b(ident, digest_size=8).hexdigest().encode()


class Erasure(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A document that a person had forgotten, the note on that, and when, in the log's time.

    ``name`` is the `erasure_name` of its id.
    """

    name: bytes
    note: bytes
    since: int


class Corrections(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What holds, in the order in which it came, and the latest erasures."""

    allowances: tuple[Allowance, ...] = ()
    erasures: tuple[Erasure, ...] = ()

    def packed(self) -> bytes:
        """Return the packed bytes, with their checksum."""
        packed = msgspec.msgpack.encode(self)
        return crc32(packed).to_bytes(_SUM_BYTES, "little") + packed

    @classmethod
    def unpacked(cls, packed: bytes | None) -> Self:
        """Return what `packed` packed; nothing corrected if there is nothing.

        Raises:
            ValueError: it is something else.
        """
        if packed is None:
            return cls()
        own, rest = packed[:_SUM_BYTES], packed[_SUM_BYTES:]
        if own != crc32(rest).to_bytes(_SUM_BYTES, "little"):
            raise ValueError("its corrections can't be read: they differ from what was written")
        return msgspec.msgpack.decode(rest, type=cls)

    def at(self, now: int, window: int | None) -> Corrections:
        """Return what still holds at a time of the log; both in ms. Without a window, all does."""
        if window is None or not self.allowances or self.allowances[0].since + window >= now:
            return self
        kept = tuple(one for one in self.allowances if one.since + window >= now)
        return Corrections(kept, self.erasures)

    def after(self, one: Correction, since: int) -> Corrections:
        """Return what holds after a correction. A later allowance replaces one with the same id.

        An allowance beyond `MOST_ALLOWANCES` doesn't hold, which is logged.
        """
        if one.kind is Kind.FORGOTTEN:
            erasures = (*self.erasures, Erasure(erasure_name(one.id), one.note, since))
            return Corrections(self.allowances, erasures[-MOST_ERASURES:])
        kept = tuple(known for known in self.allowances if known.id != one.id)
        if one.allows and len(kept) >= MOST_ALLOWANCES:
            ident = one.id.decode(errors="replace")
            _log.error(
                "allowance %r doesn't hold: there are %d, which is the most. Withdraw one, and"
                " allow the text again", ident, MOST_ALLOWANCES,
            )  # fmt: skip
        elif one.allows:
            exact = one.kind is Kind.EXACT
            kept += (Allowance(one.id, exact, one.key, one.sketch, one.note, since),)
        return Corrections(kept, self.erasures)


NO_CORRECTIONS: Final = Corrections()


def allowed(
    before: Corrections, frames: Sequence[Placed], *, threshold: float, window: int | None
) -> tuple[Corrections, dict[int, Allowed]]:
    """Return the corrections after some frames, and which of their documents are allowed.

    Those are found by their rows, counted through all frames. An allowance holds for later
    documents that are at least ``threshold`` similar, or have the same text, until ``window`` ms
    after it. The most similar one counts; of several, the earliest.
    """
    found: dict[int, Allowed] = {}
    base, held = 0, before
    for placed in frames:
        frame = placed.frame
        held = held.at(placed.logged, window)
        low = 0
        for one in frame.corrections:
            high = int(np.searchsorted(frame.offsets, one.offset))
            found |= _among(held, frame, slice(low, high), threshold, base)
            held, low = held.after(one, placed.logged), high
        found |= _among(held, frame, slice(low, placed.count), threshold, base)
        base += placed.count
    return held, found


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
    near = [one for one in allowances if not one.exact]
    if near:
        slots = sketches.shape[1]
        similarity = estimates(slots)
        own = np.frombuffer(b"".join(one.sketch for one in near), np.uint8).reshape(-1, slots)
        least = int(np.searchsorted(similarity, threshold))
        pairs = near_pairs(np.ascontiguousarray(sketches), own, least)
        for row, which, equal in zip(*(column.tolist() for column in pairs), strict=True):
            if row not in found or similarity[equal] > found[row].similarity:
                found[row] = Allowed(near[which].id, float(similarity[equal]))
    keys = {one.key: one.id for one in reversed(allowances)}
    same = np.isin(texts, np.fromiter(keys, np.uint64, len(keys)))
    for row in np.flatnonzero(same).tolist():
        found[row] = Allowed(keys[int(texts[row])], 1.0)
    return found
