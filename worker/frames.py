"""The frames that travel between the stages, and their codec.

A frame covers a half-open range of offsets of one partition of ``documents``. Frames
of a partition tile it: each begins where the one before it ended, so a lost or doubled
frame is seen by whoever reads the next one.

Per-document columns are little-endian arrays, so that a stage that only forwards them never
touches a single document. ``n`` is the number of documents in a
frame. ``accounted`` uint32[r], relative to ``start``, are the offsets of the range that were
read and not judged: rejected, or tombstones. The offsets that are in neither array hold no
record that *fingerprint* has read. It is None in frames of older workers, which don't tell, and in
the answers of the shards that don't hand it on.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np

__all__ = [
    "ACCOUNTED_OFFSETS",
    "FRAME_BYTES",
    "POSITION_BITS",
    "FingerprintFrame",
    "FrameError",
    "Ids",
    "MatchFrame",
    "answer_bytes",
    "decode",
    "encode",
]

POSITION_BITS = 16
"""A sequence number is ``frame number << POSITION_BITS | position in the frame``."""

FRAME_BYTES = 900_000
"""About how large a frame gets at most; the topics between the stages take 1 MB."""

ACCOUNTED_OFFSETS = 1 << 13
"""How many offsets a frame accounts for at most: its arrays must not outgrow the rest."""

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
    accounted: bytes | None = None


class MatchFrame(_Frame, array_like=True, frozen=True, gc=False):
    """A shard's answer for a range: the verified matches of the documents that have any.

    ``first`` is the position, in the frame numbered ``number``, of the first document of
    the range. ``matched`` uint32[m]: their offsets, relative to ``start``; ``counts``
    uint16[m]: how many matches each has; then, one after the other for all of them,
    ``which`` uint16 and ``similarities`` float32. ``which`` points into the documents that
    are matched, each of which is there once: ``sequences`` uint64 and ``ids``. Shard 0 hands
    on ``offsets`` (uint32[n], relative to ``start``) and ``checksums`` (uint64[n]) of all
    documents in the range, and what is ``accounted`` for; both arrays are empty from the others.
    """

    shard: int
    number: int
    first: int
    offsets: bytes
    checksums: bytes
    matched: bytes
    counts: bytes
    which: bytes
    similarities: bytes
    sequences: bytes
    ids: Ids
    accounted: bytes | None = None


class _MatchFrame1(_Frame, array_like=True, frozen=True, gc=False):
    """Version 1, which repeats ``sequences`` and ``ids`` for each match."""

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

    def renewed(self) -> MatchFrame:
        """Return the same answer as it is written now."""
        fields = msgspec.structs.asdict(self)
        count = len(self.sequences) // U64.itemsize
        return MatchFrame(**fields, which=np.arange(count, dtype=U16).tobytes())


def answer_bytes(matches: int, id_bytes: int) -> int:
    """Return what a document's matches take at most in a `MatchFrame`."""
    match = U16.itemsize + F32.itemsize
    matched = U64.itemsize + U16.itemsize + id_bytes
    return U32.itemsize + U16.itemsize + matches * (match + matched)


FrameT = TypeVar("FrameT", FingerprintFrame, MatchFrame)

_VERSIONS: dict[type, int] = {FingerprintFrame: 1, MatchFrame: 2}
"""What is written. A field that is added at the end, with a default, is no new version."""

_encoder = msgspec.msgpack.Encoder()
_decoders: dict[type, dict[int, msgspec.msgpack.Decoder[object]]] = {
    FingerprintFrame: {1: msgspec.msgpack.Decoder(FingerprintFrame)},
    MatchFrame: {1: msgspec.msgpack.Decoder(_MatchFrame1), 2: msgspec.msgpack.Decoder(MatchFrame)},
}
"""What is read: by kind and version."""


def encode(frame: FingerprintFrame | MatchFrame) -> bytes:
    """Give the frame's bytes: one of version, then msgpack."""
    return bytes((_VERSIONS[type(frame)],)) + _encoder.encode(frame)


def decode(kind: type[FrameT], data: bytes | None, layout: str) -> FrameT:
    """Read a frame.

    Raises:
        FrameError: of another version or layout, or no frame at all.
    """
    if not data:
        msg = f"an empty record is no {kind.__name__}"
        raise FrameError(msg)
    decoder = _decoders[kind].get(data[0])
    if decoder is None:
        msg = (
            f"a {kind.__name__} of format version {data[0]}, and this worker reads"
            f" {', '.join(map(str, _decoders[kind]))}: upgrade it"
        )
        raise FrameError(msg)
    try:
        frame = decoder.decode(memoryview(data)[1:])
    except msgspec.MsgspecError as error:
        msg = f"no {kind.__name__}: {error}"
        raise FrameError(msg) from error
    if isinstance(frame, _MatchFrame1):
        frame = frame.renewed()
    assert isinstance(frame, kind)  # noqa: S101 -- tells the type checker what the table holds
    if frame.layout != layout:
        msg = (
            f"a {kind.__name__} of layout {frame.layout}, and this worker's is {layout}: workers"
            " with different parameters, partition or shard counts share the topics; give the"
            " new ones an application id of their own"
        )
        raise FrameError(msg)
    return frame
