"""Encodes and decodes the records of the internal topics, and defines their versions.

A frame of any version begins with its layout, its partition and its range. So its bytes alone tell
what a record is, the same to every reader: a frame that can be carried out; one that is refused,
whose range is known; one of another version or layout, at which a worker stops; or nothing.

One record of ``fingerprints`` is no frame: the hand-over, at which another generation of the index
takes over.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from worker.untrusted import NOT_READ
from worker.visible import excerpt
from worker.wire.columns import ColumnError
from worker.wire.fingerprints import FingerprintFrame, PackedFingerprints
from worker.wire.frame import Frame, envelope
from worker.wire.matches import MatchFrame, PackedMatches

FrameT = TypeVar("FrameT", FingerprintFrame, MatchFrame)
_Packed = PackedFingerprints | PackedMatches

VERSIONS: dict[type, int] = {FingerprintFrame: 4, MatchFrame: 2}
"""The version that is written. Adding a field at the end, with a default, needs no new version."""

_READ: dict[tuple[type, int], msgspec.msgpack.Decoder[_Packed]] = {
    (FingerprintFrame, 4): msgspec.msgpack.Decoder(PackedFingerprints),
    (MatchFrame, 2): msgspec.msgpack.Decoder(PackedMatches),
}
"""The versions that are read. Fingerprints of earlier versions have another number for no time, or
are of earlier schemes."""

_encoder = msgspec.msgpack.Encoder()


class FrameError(Exception):
    """This worker can't use a frame: it has another version or layout, or is damaged."""


class RefusedFrame(FrameError):
    """No worker can carry a frame out. Its range is known.

    ``accounted`` uint32 are offsets in it of which all is said: documents that *fingerprint* has
    rejected. It has none if that can't be read.
    """

    def __init__(
        self, why: str, frame: Frame, accounted: npt.NDArray[np.uint32] | None = None
    ) -> None:
        """Take what is wrong with it, and what it says about itself."""
        super().__init__(why)
        self.frame = frame
        self.accounted = np.empty(0, np.uint32) if accounted is None else accounted


def encode(frame: FingerprintFrame | MatchFrame) -> bytes:
    """Return the frame's bytes: one byte of version, then msgpack."""
    return bytes((VERSIONS[type(frame)],)) + _encoder.encode(frame.packed().written())


def decode(kind: type[FrameT], data: bytes | None, layout: str) -> FrameT:
    """Return the frame of a record. Its columns are views of ``data``.

    Raises:
        RefusedFrame: its columns contradict each other, or can't be carried out.
        FrameError: it has another version or layout, or is not a frame.
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
    except NOT_READ as error:
        why = f"not a {kind.__name__}: {error}"
        found = envelope(data)
        if found is None:
            raise FrameError(why) from error
        _check_layout(kind, found, layout)
        raise RefusedFrame(why, found) from error
    _check_layout(kind, packed, layout)
    if not packed.placed:
        raise FrameError(f"not a {kind.__name__}: there is no such partition or range")
    try:
        frame = packed.frame()
    except ColumnError as error:
        why = f"a damaged {kind.__name__}: its column {error}"
        raise RefusedFrame(why, packed, packed.rejected()) from error
    assert isinstance(frame, kind)  # noqa: S101 -- tells the type checker what the table holds
    return frame


def _check_layout(kind: type, frame: Frame, layout: str) -> None:
    if frame.layout != layout:
        raise FrameError(
            f"a {kind.__name__} has layout {excerpt(frame.layout, 40)}, but this worker's is"
            f" {layout}: workers with different parameters, partition or shard counts share the"
            " topics; give the new workers an application id of their own"
        )


def answer(data: bytes | None, layout: str, shard: int) -> MatchFrame | None:
    """Return a shard's answer; None if the record is nothing, and to be passed over.

    One that can't be carried out is an answer that names no document, and says why.

    Raises:
        FrameError: it has another version or layout.
    """
    try:
        found = decode(MatchFrame, data, layout)
    except RefusedFrame as error:
        return MatchFrame.nothing(error.frame, shard, str(error))
    except FrameError:
        if envelope(data) is None:
            return None
        raise
    return found if found.shard == shard else None


NO_FRAME = -1
"""In the place of a generation: the record is no frame and no hand-over, and changes nothing."""

_HAND_OVER = 0x81
"""The first byte of a hand-over. No frame has this version: earlier workers refuse the record."""


class HandOver(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The end of all earlier generations, and the begin of this one.

    ``layout`` is that of the frames around it. Earlier generations answer for the frames before
    it, and this one for the frames after it.
    """

    layout: str
    generation: int

    def encode(self) -> bytes:
        """Return the record's value: one byte of version, then msgpack."""
        return bytes((_HAND_OVER,)) + _encoder.encode(self)


_hand_overs = msgspec.msgpack.Decoder(HandOver)


def hand_over(data: bytes | None, layout: str) -> int | None:
    """Return the generation that takes over at a record of ``fingerprints``; None at a frame.

    Raises:
        FrameError: the record is a hand-over of another layout.
    """
    if not data or data[0] != _HAND_OVER:
        return NO_FRAME if envelope(data) is None else None
    try:
        found = _hand_overs.decode(memoryview(data)[1:])
    except NOT_READ:
        return NO_FRAME
    if found.layout != layout:
        raise FrameError(f"a hand-over has layout {found.layout}, but this worker's is {layout}")
    return max(NO_FRAME, found.generation)
