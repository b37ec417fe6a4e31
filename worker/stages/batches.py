"""Frames of a shard, joined to one batch of documents."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from worker.frames import I64, POSITION_BITS, U32, U64, BandFrame
from worker.shard import ShardBatch

__all__ = ["joined"]


def joined(frames: Sequence[BandFrame], columns: Sequence[int]) -> ShardBatch:
    """Join the documents of frames, which hold the keys of these columns."""
    return ShardBatch(
        sequences=np.concatenate(
            [
                np.uint64(frame.number << POSITION_BITS) + np.arange(frame.count, dtype=np.uint64)
                for frame in frames
            ]
        ),
        times=np.frombuffer(b"".join(frame.times for frame in frames), I64),
        ids=list(chain.from_iterable(frame.ids.unpack() for frame in frames)),
        shingles=np.frombuffer(b"".join(frame.shingles for frame in frames), U32),
        columns=columns,
        keys=np.concatenate(
            [np.frombuffer(f.keys, U64).reshape(len(columns), f.count) for f in frames], axis=1
        ),
        sketches=_sketches(frames),
    )


def _sketches(frames: Sequence[BandFrame]) -> npt.NDArray[np.uint8]:
    data = np.frombuffer(b"".join(frame.sketches for frame in frames), np.uint8)
    return (
        data.reshape(sum(map(attrgetter("count"), frames)), -1) if len(data) else data.reshape(0, 0)
    )
