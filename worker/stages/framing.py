"""Packs fingerprints and tombstones into frames of bounded size."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple, Self

import mmh3
import numpy as np

from lsh import Fingerprints
from worker.bus import Record
from worker.formats.base import Document
from worker.wire import (
    ACCOUNTED_OFFSETS,
    POSITION_BITS,
    TOMBSTONE_BYTES,
    FingerprintFrame,
    Ids,
    Tombstones,
    document_bytes,
)

__all__ = ["Aside", "Framer", "Signed", "Span", "checksum"]


def checksum(payload: bytes) -> int:
    """Return the 64-bit hash by which *route* recognises the payload."""
    return mmh3.mmh3_x64_128_utupledigest(payload, 0)[0]


class Span(NamedTuple):
    """A half-open range of offsets of a partition of ``documents``."""

    partition: int
    start: int
    end: int


class Signed(NamedTuple):
    """Documents that can be judged, in the order of their offsets.

    ``offsets``, ``times`` (ms), ``checksums`` of the payloads and ``ids`` have a value for each.
    ``rows`` are those of ``fingerprints`` that are theirs.
    """

    offsets: Sequence[int]
    times: Sequence[int]
    checksums: Sequence[int]
    ids: Sequence[bytes]
    fingerprints: Fingerprints
    rows: Sequence[int]

    @classmethod
    def of(
        cls,
        sources: Sequence[tuple[Record, Document]],
        fingerprints: Fingerprints,
        rows: Sequence[int],
    ) -> Self:
        """Return documents that were just read."""
        return cls(
            [record.offset for record, _ in sources],
            [document.time for _, document in sources],
            [checksum(record.value or b"") for record, _ in sources],
            [document.id for _, document in sources],
            fingerprints,
            rows,
        )


class Aside(NamedTuple):
    """What was read and is not judged.

    ``offsets`` are those of all such records, ascending. ``tombstones`` are those that forget an
    id: the offset and the id of each, in order.
    """

    offsets: list[int]
    tombstones: list[tuple[int, bytes]]

    @classmethod
    def nothing(cls) -> Aside:
        """Return that everything is judged; more can be added."""
        return cls([], [])


class Framer:
    """Makes the frames of one layout."""

    def __init__(self, layout: str, frame_bytes: int) -> None:
        """Take the id of the layout, and the approximate size limit of a frame."""
        self._layout = layout
        self._frame_bytes = frame_bytes

    def frames(self, span: Span, signed: Signed, aside: Aside) -> Iterator[FingerprintFrame]:
        """Yield the frames that tile a range. Documents and tombstones keep their order."""
        offsets, times, checksums, ids, fingerprints, rows = signed
        accounted, tombstones = aside
        start = span.start
        low = since = first = 0
        for stop in [*self._stops(signed, aside), span.end]:
            high = bisect_left(offsets, stop, low)
            until = bisect_left(accounted, stop, since)
            last = bisect_left(tombstones, stop, first, key=itemgetter(0))
            own = rows[low:high]
            yield FingerprintFrame(
                layout=self._layout,
                partition=span.partition,
                start=start,
                end=stop,
                offsets=np.array([offset - start for offset in offsets[low:high]], np.uint32),
                times=np.array(times[low:high], np.int64),
                checksums=np.array(checksums[low:high], np.uint64),
                ids=Ids.pack(ids[low:high]),
                shingles=fingerprints.shingle_counts[own],
                texts=fingerprints.keys[own, -1],
                sketches=fingerprints.sketches[own],
                accounted=(np.array(accounted[since:until], np.int64) - start).astype(np.uint32),
                tombstones=Tombstones.pack(start, tombstones[first:last]),
            )
            start, low, since, first = stop, high, until, last

    def _stops(self, signed: Signed, aside: Aside) -> list[int]:
        """Return the offsets before which a frame must end to stay under the size limits."""
        fingerprints = signed.fingerprints
        fixed = document_bytes(fingerprints.sketches.shape[1])
        documents = zip(signed.offsets, signed.ids, strict=True)
        sizes = [(offset, fixed + len(ident)) for offset, ident in documents]
        if aside.tombstones:
            sizes += [(offset, TOMBSTONE_BYTES + len(ident)) for offset, ident in aside.tombstones]
            sizes.sort()
        return sorted({*self._cuts(sizes), *aside.offsets[ACCOUNTED_OFFSETS::ACCOUNTED_OFFSETS]})

    def _cuts(self, sizes: Sequence[tuple[int, int]]) -> Iterator[int]:
        """Yield the offsets before which a frame would become too large.

        ``sizes`` are the offset and the bytes of each document and tombstone, in their order.
        """
        size = count = 0
        for offset, more in sizes:
            if count and (size + more > self._frame_bytes or count >> POSITION_BITS):
                yield offset
                size = count = 0
            size += more
            count += 1
