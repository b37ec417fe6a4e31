"""A frame of each kind, what has been recorded of them, and how to damage one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lsh.index import NO_TIME
from worker.wire.corrections import Correction, Kind
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.ids import Ids, Tombstones
from worker.wire.matches import MatchFrame

FINGERPRINTS = FingerprintFrame(
    layout="layout",
    partition=2,
    start=10,
    end=16,
    offsets=np.array([0, 3], np.uint32),
    times=np.array([NO_TIME, -1_700_000_000_000], np.int64),
    checksums=np.array([1, 2**64 - 1], np.uint64),
    ids=Ids.pack([b"a", "ä€".encode()]),
    shingles=np.array([7, 2**32 - 1], np.uint32),
    texts=np.array([5, 2**63], np.uint64),
    sketches=np.array([[0, 1, 2, 3], [252, 253, 254, 255]], np.uint8),
    accounted=np.array([1, 4, 5], np.uint32),
    tombstones=Tombstones.pack(10, [(14, b"gone"), (15, "ö".encode())]),
)

CORRECTING = msgspec.structs.replace(
    FINGERPRINTS,
    accounted=np.array([1, 2, 4, 5], np.uint32),
    corrections=(
        Correction(
            1, Kind.NEAR, b"slogan", b"\x81\xa2at\x01", b"I love it", 2**64 - 1, b"\0\1\2\3"
        ),
        Correction(2, Kind.WITHDRAWN, b"slogan", b"\x81\xa2at\x02"),
    ),
)
"""The same frame with a text that is allowed and no longer is."""

ANSWER = MatchFrame(
    layout="layout",
    partition=3,
    start=0,
    end=5,
    shard=0,
    number=7,
    first=2,
    offsets=np.array([0, 2, 4], np.uint32),
    checksums=np.array([11, 12, 13], np.uint64),
    matched=np.array([2, 4], np.uint32),
    counts=np.array([2, 1], np.uint16),
    which=np.array([0, 1, 0], np.uint16),
    similarities=np.array([1.0, 0.9, 0.8125], np.float32),
    sequences=np.array([5 << 16, (6 << 16) + 1], np.uint64),
    ids=Ids.pack([b"a", b"bc"]),
    accounted=np.array([3], np.uint32),
)

CONTAINING = msgspec.structs.replace(ANSWER, containments=np.array([0, 0.96875, 1], np.float32))
"""The same answer, of which two matches have a containment."""
FORGETTING = msgspec.structs.replace(
    ANSWER,
    accounted=np.array([1, 3], np.uint32),
    forgetting=np.array([1, 3], np.uint32),
    forgotten=Tombstones.pack(0, [(3, "ö".encode())]),
)
"""The same answer, of a range with two tombstones, of which one has forgotten something."""


def recorded(name: str) -> bytes:
    """Return a frame as a worker wrote it: kind, version and what is special about it."""
    return bytes.fromhex((Path(__file__).parent / "recorded" / f"{name}.hex").read_text())


def content(frame: FingerprintFrame | MatchFrame) -> dict[str, object]:
    """Return a frame's fields by name, as plain values with the arrays' types."""
    fields: dict[str, object] = {}
    for name, value in msgspec.structs.asdict(frame).items():
        if isinstance(value, np.ndarray):
            fields[name] = (value.dtype.name, value.tolist())
        else:
            fields[name] = _plain(value)
    return fields


def _plain(value: object) -> object:
    if isinstance(value, Tombstones):
        return list(zip(value.offsets.tolist(), value.ids.unpack(), strict=True))
    return value.unpack() if isinstance(value, Ids) else value


def with_columns(frame: FingerprintFrame | MatchFrame, **columns: Any) -> bytes:  # noqa: ANN401 -- bytes, or packed ids
    """Return the msgpack of a frame, the version left out, with other bytes in some columns."""
    return msgspec.msgpack.encode(msgspec.structs.replace(frame.packed(), **columns))
