"""What the stages exchange: frames and headers.

Only this package knows the byte layout of a frame; all other code sees arrays.
"""

from __future__ import annotations

from worker.wire.aside import SetAside, beyond, by_partition
from worker.wire.codec import FrameError, RefusedFrame, answer, decode, encode
from worker.wire.corrections import (
    ALLOWED,
    MOST_CHARACTERS,
    Correction,
    CorrectionError,
    Kind,
    Note,
    Request,
)
from worker.wire.fingerprints import FingerprintFrame, document_bytes
from worker.wire.frame import ACCOUNTED_OFFSETS, FRAME_BYTES, POSITION_BITS
from worker.wire.hand_over import NO_FRAME, HandOver, hand_over
from worker.wire.ids import MOST_ID_BYTES, Ids, nameable
from worker.wire.layout import Layout
from worker.wire.matches import (
    CONTAINMENT_BYTES,
    MATCH_BYTES,
    MOST_NAMED,
    NAMED_BYTES,
    ROW_BYTES,
    MatchFrame,
    answer_bytes,
)
from worker.wire.tombstones import NO_TOMBSTONES, TOMBSTONE_BYTES, Tombstones

__all__ = [
    "ACCOUNTED_OFFSETS",
    "ALLOWED",
    "CONTAINMENT_BYTES",
    "FRAME_BYTES",
    "MATCH_BYTES",
    "MOST_CHARACTERS",
    "MOST_ID_BYTES",
    "MOST_NAMED",
    "NAMED_BYTES",
    "NO_FRAME",
    "NO_TOMBSTONES",
    "POSITION_BITS",
    "ROW_BYTES",
    "TOMBSTONE_BYTES",
    "Correction",
    "CorrectionError",
    "FingerprintFrame",
    "FrameError",
    "HandOver",
    "Ids",
    "Kind",
    "Layout",
    "MatchFrame",
    "Note",
    "RefusedFrame",
    "Request",
    "SetAside",
    "Tombstones",
    "answer",
    "answer_bytes",
    "beyond",
    "by_partition",
    "decode",
    "document_bytes",
    "encode",
    "hand_over",
    "nameable",
]
