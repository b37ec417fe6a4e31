"""The record of ``fingerprints`` at which another generation of the index takes over."""

from __future__ import annotations

import msgspec

from worker.wire.codec import FrameError

__all__ = ["HandOver", "hand_over"]

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
    """Return the generation that takes over at a record of ``fingerprints``; None if none does.

    Raises:
        FrameError: the record is a hand-over of another layout, or damaged.
    """
    if not data or data[0] != _VERSION:
        return None
    try:
        found = _decoder.decode(memoryview(data)[1:])
    except msgspec.MsgspecError as error:
        raise FrameError(f"not a hand-over: {error}") from error
    if found.layout != layout:
        raise FrameError(f"a hand-over has layout {found.layout}, but this worker's is {layout}")
    return found.generation
