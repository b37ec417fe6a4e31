"""The frames that travel between the stages, and their codec.

A frame covers a half-open range of offsets of one partition of ``documents``. Frames
of a partition tile it: each begins where the one before it ended, so a lost or doubled
frame is seen by whoever reads the next one.

Per-document columns are little-endian arrays, so that a stage that only cuts or
forwards them never touches a single document. ``n`` is the number of documents in a
frame; offsets of the range that no document has were rejected, tombstones or control
records.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np

__all__ = [
    "POSITION_BITS",
    "BandFrame",
    "FingerprintFrame",
    "FrameError",
    "Ids",
    "MatchFrame",
    "decode",
    "encode",
]

POSITION_BITS = 16
"""A sequence number is ``frame number << POSITION_BITS | position in the frame``."""

_VERSION = 1
_READABLE = frozenset({1})

U32 = np.dtype("<u4")
U64 = np.dtype("<u8")
I64 = np.dtype("<i8")
F32 = np.dtype("<f4")
U16 = np.dtype("<u2")
U8 = np.dtype("u1")


class FrameError(Exception):
    """A frame can't be used by this worker: other version, other layout, or damaged."""


class Ids(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Document ids (UTF-8) as one buffer; ``lengths`` is uint16[n]."""

    lengths: bytes
    data: bytes

    @classmethod
    def pack(cls, ids: list[bytes]) -> Ids:
        """Pack ids of at most 65,535 bytes each."""
        return cls(np.fromiter(map(len, ids), U16, len(ids)).tobytes(), b"".join(ids))

    def unpack(self) -> list[bytes]:
        """Give the ids as a list."""
        ends = np.cumsum(np.frombuffer(self.lengths, U16), dtype=np.int64).tolist()
        data = self.data
        start = 0
        ids = []
        for end in ends:
            ids.append(data[start:end])
            start = end
        return ids


class _Frame(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What every frame says: where its documents come from.

    ``layout`` names partition counts and parameters; ``partition``, ``start`` and
    ``end`` are the range of ``documents`` that the frame covers.
    """

    layout: str
    partition: int
    start: int
    end: int


class FingerprintFrame(_Frame, array_like=True, frozen=True, gc=False):
    """What *fingerprint* says about a range of documents.

    ``offsets`` uint32[n], relative to ``start``; ``times`` int64[n], ms; ``checksums``
    uint64[n] of the payloads; ``shingles`` uint32[n], their count; ``keys`` uint64[c, n],
    column by column: a key per band, and the exact text's; ``sketches`` uint8[n, s].
    """

    offsets: bytes
    times: bytes
    checksums: bytes
    ids: Ids
    shingles: bytes
    keys: bytes
    sketches: bytes


class BandFrame(_Frame, array_like=True, frozen=True, gc=False):
    """A shard's part of a fingerprint frame: the columns of the bands that it owns.

    ``number`` is the frame's place in the one order; ``now`` is the log's time of the
    frame in ms, and ``times`` are at most that plus the allowance. ``checksums`` are only
    in shard 0's frame: one shard has to hand them on to *route*.
    """

    shard: int
    number: int
    now: int
    count: int
    offsets: bytes
    times: bytes
    checksums: bytes
    ids: Ids
    shingles: bytes
    keys: bytes
    sketches: bytes


class MatchFrame(_Frame, array_like=True, frozen=True, gc=False):
    """A shard's answer for a range: the verified matches of the documents that have any.

    ``first`` is the position, in the frame numbered ``number``, of the first document of
    the range. ``matched`` uint32[m]: their offsets, relative to ``start``; ``counts``
    uint16[m]: how many matches each has; then, one after the other for all of them,
    ``sequences`` uint64, ``similarities`` float32 and ``ids``. Shard 0 hands on
    ``offsets`` (uint32[n], relative to ``start``) and ``checksums`` (uint64[n]) of all
    documents in the range; both are empty from the others.
    """

    shard: int
    number: int
    first: int
    offsets: bytes
    checksums: bytes
    matched: bytes
    counts: bytes
    sequences: bytes
    similarities: bytes
    ids: Ids


FrameT = TypeVar("FrameT", FingerprintFrame, BandFrame, MatchFrame)

_encoder = msgspec.msgpack.Encoder()
_decoders: dict[type, msgspec.msgpack.Decoder[object]] = {
    kind: msgspec.msgpack.Decoder(kind) for kind in (FingerprintFrame, BandFrame, MatchFrame)
}


def encode(frame: FingerprintFrame | BandFrame | MatchFrame) -> bytes:
    """Give the frame's bytes: one of version, then msgpack."""
    return bytes((_VERSION,)) + _encoder.encode(frame)


def decode(kind: type[FrameT], data: bytes | None, layout: str) -> FrameT:
    """Read a frame.

    Raises:
        FrameError: of another version or layout, or no frame at all.
    """
    if not data:
        msg = f"an empty record is no {kind.__name__}"
        raise FrameError(msg)
    if data[0] not in _READABLE:
        msg = (
            f"a {kind.__name__} of format version {data[0]}, and this worker reads"
            f" {', '.join(map(str, sorted(_READABLE)))}: upgrade it"
        )
        raise FrameError(msg)
    try:
        frame = _decoders[kind].decode(memoryview(data)[1:])
    except msgspec.MsgspecError as error:
        msg = f"no {kind.__name__}: {error}"
        raise FrameError(msg) from error
    assert isinstance(frame, kind)  # noqa: S101 -- tells the type checker what the table holds
    if frame.layout != layout:
        msg = (
            f"a {kind.__name__} of layout {frame.layout}, and this worker's is {layout}: workers"
            " with different parameters, partition or shard counts share the topics; give the"
            " new ones an application id of their own"
        )
        raise FrameError(msg)
    return frame
