"""The one order: what a frame's place in ``fingerprints`` says of its documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from worker.bus import Record
from worker.frames import I64, POSITION_BITS, U32, U64, FingerprintFrame, decode
from worker.shard import ShardBatch

__all__ = ["Documents", "Placed", "columns_of", "placed"]


def columns_of(shard: int, shards: int, columns: int) -> range:
    """Return the key columns (bands, then the exact text) that a shard owns."""
    return range(shard, columns, shards)


@dataclass(frozen=True, slots=True)
class Placed:
    """A frame at its place in the order.

    ``number`` is its offset in the log, and ``now`` the log's time of it in ms. ``times`` int64[n]
    are those of its documents: their own, at most ``now`` and an allowance.
    """

    frame: FingerprintFrame
    number: int
    now: int
    times: npt.NDArray[np.int64]

    @property
    def count(self) -> int:
        """Return how many documents it has."""
        return len(self.times)


def placed(record: Record, layout: str, allowance_ms: int) -> Placed:
    """Read a record of ``fingerprints``.

    Raises:
        FrameError: it is no frame that this worker can read.
    """
    frame = decode(FingerprintFrame, record.value, layout)
    now = record.timestamp
    times = np.frombuffer(frame.times, I64)
    times = np.where(times < 0, now, np.minimum(times, now + allowance_ms))
    return Placed(frame, record.offset, now, times)


@dataclass(frozen=True)
class Documents:
    """The documents of frames, in their order; what is asked for is made once."""

    frames: Sequence[Placed]

    def __len__(self) -> int:
        """Return how many there are."""
        return sum(map(attrgetter("count"), self.frames))

    @cached_property
    def _sequences(self) -> npt.NDArray[np.uint64]:
        return np.concatenate(
            [
                np.uint64(one.number << POSITION_BITS) + np.arange(one.count, dtype=np.uint64)
                for one in self.frames
            ]
        )

    @cached_property
    def _times(self) -> npt.NDArray[np.int64]:
        return np.concatenate([one.times for one in self.frames])

    @cached_property
    def _ids(self) -> list[bytes]:
        return list(chain.from_iterable(one.frame.ids.unpack() for one in self.frames))

    @cached_property
    def _shingles(self) -> npt.NDArray[np.uint32]:
        return np.frombuffer(b"".join(one.frame.shingles for one in self.frames), U32)

    @cached_property
    def _keys(self) -> list[npt.NDArray[np.uint64]]:
        """Give, by frame, uint64[c, n] with all columns."""
        return [
            np.frombuffer(one.frame.keys, U64).reshape(-1, one.count)
            if one.count
            else np.empty((0, 0), U64)
            for one in self.frames
        ]

    @cached_property
    def _sketches(self) -> npt.NDArray[np.uint8]:
        data = np.frombuffer(b"".join(one.frame.sketches for one in self.frames), np.uint8)
        return data.reshape(len(self), -1) if len(data) else data.reshape(0, 0)

    def batch(self, columns: range) -> ShardBatch:
        """Return them as the shard that owns these columns sees them."""
        keys = [part[columns.start :: columns.step] for part in self._keys if part.shape[1]]
        return ShardBatch(
            sequences=self._sequences,
            times=self._times,
            ids=self._ids,
            shingles=self._shingles,
            columns=columns,
            keys=np.concatenate(keys, axis=1) if keys else np.empty((len(columns), 0), U64),
            sketches=self._sketches,
        )
