"""Answers of shards, made by hand."""

from __future__ import annotations

from typing import Final

import numpy as np

from tests.support.stages import LAYOUT, document
from worker.bus import Record
from worker.stages.framing import checksum
from worker.wire.codec import encode
from worker.wire.ids import Ids
from worker.wire.matches import MatchFrame

FRAME: Final = 10
"""The documents of each frame."""


def answer(shard: int, number: int, matches: int) -> Record:
    """Return the answer for a frame's documents, each with as many matches."""
    start = number * FRAME
    handed_on = range(start, start + FRAME if shard == 0 else start)
    values = [document(offset).value or b"" for offset in handed_on]
    frame = MatchFrame(
        layout=LAYOUT,
        partition=0,
        start=start,
        end=start + FRAME,
        shard=shard,
        number=number,
        first=0,
        offsets=np.arange(len(values), dtype=np.uint32),
        checksums=np.array([checksum(value) for value in values], np.uint64),
        matched=np.arange(FRAME if matches else 0, dtype=np.uint32),
        counts=np.full(FRAME if matches else 0, matches, np.uint16),
        which=np.tile(np.arange(matches, dtype=np.uint16), FRAME),
        similarities=np.full(FRAME * matches, 0.9, np.float32),
        sequences=np.arange(matches, dtype=np.uint64),
        ids=Ids.pack([b"%040d" % ident for ident in range(matches)]),
        accounted=np.empty(0, np.uint32),
    )
    return Record(f"app.matches-{shard}", 0, number, 1, None, encode(frame))
