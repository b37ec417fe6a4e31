"""The record of ``fingerprints`` at which another generation of the index takes over."""

from __future__ import annotations

import msgspec

from worker.untrusted import NOT_READ
from worker.wire.codec import FrameError
from worker.wire.frame import envelope

NO_FRAME = -1
"""In the place of a generation: the record is no frame and no hand-over, and changes nothing."""

_VERSION = 0x81
"""The first byte, which is no version of a frame: earlier workers refuse the record."""


class HandOver(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The end of all earlier generations, and the begin of this one.

    ``layout`` is that of the frames around it. Earlier generations answer for the frames before
    it, and this one for the frames after it.
    """

    layout: str
    generation: int

    def encode(self) -> bytes:
        """Return the record's value: one byte of version, then msgpack."""
        return bytes((_VERSION,)) + msgspec.msgpack.encode(self)


_decoder = msgspec.msgpack.Decoder(HandOver)


def hand_over(data: bytes | None, layout: str) -> int | None:
    """Return the generation that takes over at a record of ``fingerprints``; None at a frame.

    Raises:
        FrameError: the record is a hand-over of another layout.
    """
    if not data or data[0] != _VERSION:
        return NO_FRAME if envelope(data) is None else None
    try:
        found = _decoder.decode(memoryview(data)[1:])
    except NOT_READ:
        return NO_FRAME
    if found.layout != layout:
        raise FrameError(f"a hand-over has layout {found.layout}, but this worker's is {layout}")
    return max(NO_FRAME, found.generation)
