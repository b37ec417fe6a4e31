"""The fields that all frames share, and the size limits of a frame.

A frame covers a half-open range of offsets of one partition of ``documents``. The frames of a
partition tile it: each begins where the previous one ended, so whoever reads the next frame
detects a lost or doubled one.

A frame stores its documents in columns, which are arrays. The columns of a decoded frame are
read-only views of the record, so a stage that only forwards them never touches single documents.
The views may be unaligned, which costs little to read once; copy what is read often.
"""

from __future__ import annotations

import msgspec

from worker.untrusted import NOT_READ

POSITION_BITS = 16
"""A sequence number is ``frame number << POSITION_BITS | position in the frame``."""

FRAME_BYTES = 900_000
"""The approximate size limit of a frame; the topics between the stages accept 1 MB."""

ACCOUNTED_OFFSETS = 1 << 13
"""The most offsets a frame accounts for, so that this array stays small beside the rest."""


class Frame(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The source of a frame's documents.

    ``layout`` identifies partition counts and parameters; ``partition``, ``start`` and
    ``end`` are the range of ``documents`` that the frame covers.
    """

    layout: str
    partition: int
    start: int
    end: int

    @property
    def placed(self) -> bool:
        """Return whether Kafka can have such a partition, and such a range that isn't empty."""
        return 0 <= self.partition < 1 << 31 and 0 <= self.start < self.end < 1 << 63


class _Envelope(Frame, array_like=True, frozen=True, gc=False, eq=False):
    """The fields that begin a frame of any version."""


_envelope = msgspec.msgpack.Decoder(_Envelope)


def envelope(data: bytes | None) -> Frame | None:
    """Return what a frame of any version says about itself; None if the bytes are no frame."""
    try:
        found = _envelope.decode(memoryview(data or b"")[1:])
    except NOT_READ:
        return None
    return found if found.placed else None
