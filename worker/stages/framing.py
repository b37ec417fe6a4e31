"""Packs fingerprints, tombstones and corrections into frames of bounded size."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple, Self

import mmh3
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from lsh import Fingerprinter
from worker.corrections.request import CorrectionError
from worker.wire.corrections import Correction
from worker.wire.fingerprints import FingerprintFrame, document_bytes
from worker.wire.frame import ACCOUNTED_OFFSETS, POSITION_BITS
from worker.wire.ids import TOMBSTONE_BYTES, Ids, Tombstones


def checksum(payload: bytes) -> int:
    """Return the 64-bit hash by which *route* recognises a payload."""
    return mmh3.mmh3_x64_128_utupledigest(payload, 0)[0]


def checksums(payloads: Iterable[bytes | None]) -> npt.NDArray[np.uint64]:
    """Return the `checksum` of each of n payloads, uint64[n]."""
    digest = mmh3.mmh3_x64_128_utupledigest
    return np.array([digest(payload or b"", 0)[0] for payload in payloads], np.uint64)


class Span(NamedTuple):
    """A half-open range of offsets of a partition of ``documents``."""

    partition: int
    start: int
    end: int


class Signed(NamedTuple):
    """n documents that can be judged, in the order of their offsets.

    ``offsets`` and ``times`` (ms) int64[n], ``checksums`` uint64[n] of the payloads, n ``ids``,
    and what `Fingerprinter.sign` returns: ``sketches`` uint8[n, slots], ``texts`` uint64[n] and
    ``shingles`` uint32[n].
    """

    offsets: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    checksums: npt.NDArray[np.uint64]
    ids: Sequence[bytes]
    sketches: npt.NDArray[np.uint8]
    texts: npt.NDArray[np.uint64]
    shingles: npt.NDArray[np.uint32]

    @classmethod
    def nothing(cls, slots: int) -> Self:
        """Return no documents, whose sketches would have so many slots."""
        integers = np.empty(0, np.int64)
        keys = np.empty(0, np.uint64)
        counts = np.empty(0, np.uint32)
        return cls(integers, integers, keys, (), np.empty((0, slots), np.uint8), keys, counts)


def signed_correction(made: Correction, fingerprinter: Fingerprinter) -> Correction:
    """Return a correction with the key and the sketch of its text, if it allows one.

    Raises:
        CorrectionError: nothing is left of the text once it is normalised.
    """
    if not made.allows:
        return made
    signed = fingerprinter.sign([made.text.decode()])
    if signed.blank[0]:
        raise CorrectionError("nothing is left of the text that it allows once it is normalised")
    return replace(made, key=int(signed.texts[0]), sketch=signed.sketches[0].tobytes())


class Aside(NamedTuple):
    """Records that were read and are not judged.

    ``offsets`` are those of all such records, ascending. ``tombstones`` are those that forget an
    id: the offset and the id of each, in order. ``corrections`` are what people correct, with
    offsets in the log of the documents.
    """

    offsets: list[int]
    tombstones: list[tuple[int, bytes]]
    corrections: list[Correction]

    @classmethod
    def nothing(cls) -> Aside:
        """Return that everything is judged; more can be added."""
        return cls([], [], [])


class Framer:
    """Makes the frames of one layout."""

    def __init__(self, layout: str, frame_bytes: int) -> None:
        """Take the id of the layout, and the approximate size limit of a frame."""
        self._layout = layout
        self._frame_bytes = frame_bytes

    def frames(self, span: Span, signed: Signed, aside: Aside) -> Iterator[FingerprintFrame]:
        """Yield the frames that tile a range. Everything keeps its order."""
        offsets, accounted, tombstones = signed.offsets, aside.offsets, aside.tombstones
        start = span.start
        low = since = first = 0
        for stop in [*self._stops(signed, aside), span.end]:
            high = int(np.searchsorted(offsets, stop))
            until = bisect_left(accounted, stop, since)
            last = bisect_left(tombstones, stop, first, key=itemgetter(0))
            own = slice(low, high)
            yield FingerprintFrame(
                layout=self._layout,
                partition=span.partition,
                start=start,
                end=stop,
                offsets=(offsets[own] - start).astype(np.uint32),
                times=signed.times[own],
                checksums=signed.checksums[own],
                ids=Ids.pack(signed.ids[own]),
                shingles=signed.shingles[own],
                texts=signed.texts[own],
                sketches=signed.sketches[own],
                accounted=(np.array(accounted[since:until], np.int64) - start).astype(np.uint32),
                tombstones=Tombstones.pack(start, tombstones[first:last]),
                corrections=Correction.within(aside.corrections, start, stop),
            )
            start, low, since, first = stop, high, until, last

    def _stops(self, signed: Signed, aside: Aside) -> list[int]:
        """Return the offsets before which a frame must end to stay under the size limits."""
        fixed = document_bytes(signed.sketches.shape[1])
        sizes = np.fromiter(map(len, signed.ids), np.int64, len(signed.ids)) + fixed
        offsets = signed.offsets
        beside = {offset: TOMBSTONE_BYTES + len(ident) for offset, ident in aside.tombstones}
        for one in aside.corrections:
            beside[one.offset] = beside.get(one.offset, 0) + one.size
        if beside:
            offsets = np.append(offsets, list(beside))
            order = np.argsort(offsets, kind="stable")
            offsets, sizes = offsets[order], np.append(sizes, list(beside.values()))[order]
        return sorted(
            {*self._cuts(offsets, sizes), *aside.offsets[ACCOUNTED_OFFSETS::ACCOUNTED_OFFSETS]}
        )

    def _cuts(self, offsets: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> Iterator[int]:
        """Yield the offsets before which a frame would become too large.

        ``offsets`` and ``sizes`` int64[m], in bytes, are those of documents, tombstones and
        corrections in their order.
        """
        ends = np.cumsum(sizes)
        at, before = 0, 0
        while at < len(ends):
            full = int(np.searchsorted(ends, before + self._frame_bytes, side="right"))
            at = min(max(full, at + 1), at + (1 << POSITION_BITS))
            if at < len(ends):
                yield int(offsets[at])
                before = int(ends[at - 1])
