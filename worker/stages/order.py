"""The global order: a frame's offset in ``fingerprints`` gives its documents' numbers and times.

Frames tile: each begins where the one before it ended. Nothing is applied over a gap or an overlap.
Each shard's store has the `Coverage` of the frames that it has applied.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from lsh import Parameters, band_keys
from lsh.index import DocumentBatch, Forgotten
from worker.bus import Record
from worker.stages.base import StageError
from worker.wire.codec import RefusedFrame, decode
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.frame import POSITION_BITS, Layout

_offset = struct.Struct("<q")
_span = struct.Struct("<qqqq")
"""The partition, then its `Span`."""


class Span(NamedTuple):
    """What frames have covered of one partition of ``documents``.

    The frames begin at ``begin`` and reach to ``end``; ``covered`` is the sum of their lengths.
    Frames that tile cover every offset once.
    """

    begin: int
    end: int
    covered: int

    @property
    def tiled(self) -> bool:
        """Return whether every offset is covered exactly once, by count."""
        return self.covered == self.end - self.begin


class Coverage:
    """A span for each partition of ``documents`` that a frame has covered."""

    __slots__ = ("_spans",)

    def __init__(self, spans: dict[int, Span] | None = None) -> None:
        """Take spans by partition; none for a store that has seen no frame."""
        self._spans = spans or {}

    def __iter__(self) -> Iterator[tuple[int, Span]]:
        """Return an iterator over partitions and their spans, by ascending partition."""
        return iter(sorted(self._spans.items()))

    def copy(self) -> Coverage:
        """Return an independent copy."""
        return Coverage(dict(self._spans))

    def expected(self, partition: int) -> int | None:
        """Return where the next frame must begin; None if it may begin anywhere."""
        span = self._spans.get(partition)
        return None if span is None else span.end

    def add(self, partition: int, start: int, end: int) -> None:
        """Add a frame that covers ``start`` to ``end``, whether it tiles or not."""
        span = self._spans.get(partition)
        self._spans[partition] = (
            Span(start, end, end - start)
            if span is None
            else Span(span.begin, max(span.end, end), span.covered + end - start)
        )

    def encode(self, offset: int) -> bytes:
        """Return the bytes to store; ``offset`` is the log offset that the frames reach."""
        spans = b"".join(_span.pack(partition, *span) for partition, span in self._spans.items())
        return _offset.pack(offset) + spans

    @classmethod
    def decode(cls, data: bytes | None, offset: int) -> Coverage:
        """Return the coverage that `encode` packed.

        If it was packed for another offset, a version that doesn't know about coverage has
        written since. The coverage then starts empty, as in a store that never had one.

        Raises:
            ValueError: the bytes were not made by `encode`.
        """
        if data is None:
            return cls()
        if len(data) < _offset.size or (len(data) - _offset.size) % _span.size:
            raise ValueError(f"{len(data)} bytes are not an encoded coverage")
        if _offset.unpack_from(data)[0] != offset:
            return cls()
        spans = _span.iter_unpack(data[_offset.size :])
        return cls({partition: Span(*span) for partition, *span in spans})


ScalarT = TypeVar("ScalarT", bound=np.generic)


class FrameOutOfPlace(StageError):
    """A frame does not begin where the previous one ended."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A frame with its place in the order.

    ``offset`` is that in the log. ``number`` is the offset and what the layout adds to it.
    ``times`` int64[n] are the documents' own times in ms, at most that of the frame in the log plus
    an allowance, or `NO_TIME`. ``logged`` is the time of the frame in the log, in ms. ``refused``
    says why a frame has no documents although its range may have some: no shard can carry it out.
    """

    frame: FingerprintFrame
    offset: int
    number: int
    times: npt.NDArray[np.int64]
    logged: int
    refused: str | None = None

    @property
    def count(self) -> int:
        """Return how many documents it has."""
        return len(self.times)


def placed(record: Record, layout: Layout, allowance_ms: int) -> Placed:
    """Return the frame of a record of ``fingerprints``, with its place in the order.

    Whether it is refused follows from its bytes and the layout, so it is the same for all readers.

    Raises:
        FrameError: it has another version or layout, or is not a frame.
    """
    refused = None
    try:
        frame = decode(FingerprintFrame, record.value, layout.id)
        _check_sketches(frame, layout.parameters.slots)
    except RefusedFrame as error:
        refused = str(error)
        frame = FingerprintFrame.nothing(error.frame, error.accounted)
    times = np.minimum(frame.times, record.timestamp + allowance_ms)
    number = layout.numbered_from + record.offset
    return Placed(frame, record.offset, number, times, record.timestamp, refused)


def _check_sketches(frame: FingerprintFrame, expected: int) -> None:
    slots = frame.sketches.shape[1] if len(frame.offsets) else expected
    others = {len(one.sketch) for one in frame.corrections if one.allows}
    for found in {slots, *others} - {expected}:
        raise RefusedFrame(
            f"a damaged FingerprintFrame: its column sketches has {found} values for a text,"
            f" expected {expected}",
            frame,
            frame.packed().rejected(),
        )


def covered(shard: int, coverage: Coverage, frames: Iterable[Placed]) -> Coverage:
    """Return the coverage of a shard once these frames are applied.

    Raises:
        FrameOutOfPlace: a frame was lost, doubled or moved.
    """
    after = coverage.copy()
    for one in frames:
        follow(after, one, f"shard {shard}")
    return after


def follow(coverage: Coverage, one: Placed, reader: str) -> None:
    """Add a frame to what those before it in the log have covered; ``reader`` is who reads it.

    Raises:
        FrameOutOfPlace: a frame was lost, doubled or moved.
    """
    frame = one.frame
    expected = coverage.expected(frame.partition)
    if expected is not None and frame.start != expected:
        msg = (
            f"{reader}: the frame at offset {one.offset} of the fingerprints covers"
            f" partition {frame.partition} of the documents from offset {frame.start}, but"
            f" {expected} comes next: a frame was lost or doubled. It was not applied. Restart"
            " the worker; if it stops here again, see the runbook, 'A frame out of place'"
        )
        raise FrameOutOfPlace(msg)
    coverage.add(frame.partition, frame.start, frame.end)


@dataclass(frozen=True)
class Documents:
    """The documents of frames, in order. Each array is built once, when it is first used."""

    frames: Sequence[Placed]

    def __len__(self) -> int:
        """Return how many there are."""
        return sum(map(attrgetter("count"), self.frames))

    @cached_property
    def _sequences(self) -> npt.NDArray[np.uint64]:
        firsts = [one.number << POSITION_BITS for one in self.frames]
        return _joined(
            [
                np.arange(first, first + one.count, dtype=np.uint64)
                for first, one in zip(firsts, self.frames, strict=True)
            ]
        )

    @cached_property
    def _times(self) -> npt.NDArray[np.int64]:
        return _joined([one.times for one in self.frames])

    @cached_property
    def _ids(self) -> list[bytes]:
        return list(chain.from_iterable(one.frame.ids.unpack() for one in self.frames))

    @cached_property
    def _shingles(self) -> npt.NDArray[np.uint32]:
        return _joined([one.frame.shingles for one in self.frames])

    @cached_property
    def _sketches(self) -> npt.NDArray[np.uint8]:
        sketches = [one.frame.sketches for one in self.frames if one.count]
        return _joined(sketches) if sketches else np.empty((0, 0), np.uint8)

    @cached_property
    def _texts(self) -> npt.NDArray[np.uint64]:
        texts = [one.frame.texts for one in self.frames if one.count]
        return _joined(texts) if texts else np.empty(0, np.uint64)

    @cached_property
    def forgotten_ids(self) -> frozenset[bytes]:
        """Return the ids that their tombstones forget."""
        return frozenset(one.id for one in self._forgotten)

    @cached_property
    def own_ids(self) -> frozenset[bytes]:
        """Return the ids of the documents themselves."""
        return frozenset(self._ids)

    @cached_property
    def _forgotten(self) -> list[Forgotten]:
        found: list[Forgotten] = []
        base = 0
        for one in self.frames:
            if len(one.frame.tombstones):
                found += _forgotten(one.frame, base)
            base += one.count
        return found

    def batch(self, layout: Layout, shard: int) -> DocumentBatch:
        """Return the documents with the keys of the columns that a shard of the layout owns."""
        columns = layout.columns_of(shard)
        return DocumentBatch(
            sequences=self._sequences,
            times=self._times,
            ids=self._ids,
            shingles=self._shingles,
            columns=columns,
            keys=_keys(self._sketches, self._texts, columns, layout.parameters),
            sketches=self._sketches,
            forgotten=self._forgotten,
        )


def _keys(
    sketches: npt.NDArray[np.uint8],
    texts: npt.NDArray[np.uint64],
    columns: range,
    parameters: Parameters,
) -> npt.NDArray[np.uint64]:
    """Return the keys of c columns, uint64[c, n]. The column after the bands is the exact text."""
    keys = np.empty((len(columns), len(texts)), np.uint64)
    if len(texts):
        bands, rows = parameters.bands, parameters.rows
        own = [column for column in columns if column < bands]
        keys[: len(own)] = band_keys(sketches, bands, rows, own).T
        keys[len(own) :] = texts
    return keys


def _forgotten(frame: FingerprintFrame, base: int) -> Iterator[Forgotten]:
    """Return what a frame's tombstones forget; its first document has row ``base``."""
    tombstones = frame.tombstones
    rows = base + np.searchsorted(frame.offsets, tombstones.offsets)
    return map(Forgotten, rows.tolist(), tombstones.ids.unpack())


def _joined(parts: Sequence[npt.NDArray[ScalarT]]) -> npt.NDArray[ScalarT]:
    """Return the arrays' rows in one array; a single array is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
