"""Encodes and decodes frames, and defines which versions are written and read."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from worker.wire.columns import ColumnError
from worker.wire.fingerprints import FingerprintFrame, PackedFingerprints
from worker.wire.matches import MatchFrame, PackedMatches, PackedWhole

__all__ = ["VERSIONS", "FrameError", "decode", "encode"]

FrameT = TypeVar("FrameT", FingerprintFrame, MatchFrame)
_Packed = PackedFingerprints | PackedMatches

VERSIONS: dict[type, int] = {FingerprintFrame: 4, MatchFrame: 2}
"""The version that is written. Adding a field at the end, with a default, needs no new version."""

_READ: dict[tuple[type, int], msgspec.msgpack.Decoder[_Packed]] = {
    (FingerprintFrame, 4): msgspec.msgpack.Decoder(PackedFingerprints),
    (MatchFrame, 2): msgspec.msgpack.Decoder(PackedWhole),
}
"""The versions that are read. Fingerprints of earlier versions have another number for no time, or
are of earlier schemes."""

_encoder = msgspec.msgpack.Encoder()


class FrameError(Exception):
    """This worker can't use a frame: it has another version or layout, or is damaged."""


def encode(frame: FingerprintFrame | MatchFrame) -> bytes:
    """Return the frame's bytes: one byte of version, then msgpack."""
    return bytes((VERSIONS[type(frame)],)) + _encoder.encode(frame.packed())


def decode(kind: type[FrameT], data: bytes | None, layout: str) -> FrameT:
    """Return the frame of a record. Its columns are views of ``data``.

    Raises:
        FrameError: it has another version or layout, its columns contradict each other, or it is
            not a frame.
    """
    if not data:
        raise FrameError(f"not a {kind.__name__}: the record is empty")
    decoder = _READ.get((kind, data[0]))
    if decoder is None:
        known = ", ".join(str(version) for other, version in _READ if other is kind)
        raise FrameError(
            f"a {kind.__name__} has format version {data[0]}, but this worker reads {known}:"
            " upgrade the worker"
        )
    try:
        packed = decoder.decode(memoryview(data)[1:])
    except msgspec.MsgspecError as error:
        raise FrameError(f"not a {kind.__name__}: {error}") from error
    if packed.layout != layout:
        raise FrameError(
            f"a {kind.__name__} has layout {packed.layout}, but this worker's is {layout}: workers"
            " with different parameters, partition or shard counts share the topics; give the"
            " new workers an application id of their own"
        )
    try:
        frame = packed.frame()
    except ColumnError as error:
        raise FrameError(f"a damaged {kind.__name__}: its column {error}") from error
    assert isinstance(frame, kind)  # noqa: S101 -- tells the type checker what the table holds
    return frame
