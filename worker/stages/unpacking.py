"""Reads out of a shard's packed answer what is needed of it, when it is."""

from __future__ import annotations

from collections import deque
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from worker.frames import F32, POSITION_BITS, U16, U32, U64, MatchFrame
from worker.shard import Match

__all__ = ["Found", "Judged", "add_found", "best", "judged_of", "next_named"]


class Judged(NamedTuple):
    """What shard 0 says of a document: where it is, and what it was when it was signed."""

    offset: int
    checksum: int
    sequence: int


class Found(NamedTuple):
    """The matches that one shard found for one document: a slice of its answer's arrays."""

    answer: _Unpacked
    first: int
    last: int


class _Unpacked(NamedTuple):
    """The matches of an answer."""

    which: np.ndarray[tuple[int], np.dtype[np.uint16]]
    similarities: np.ndarray[tuple[int], np.dtype[np.float32]]
    sequences: list[int]
    ids: list[bytes]


def best(found: list[Found]) -> list[Match]:
    """Merge the shards' answers: a document once, best first, ties by sequence.

    Each shard's own are in this order.
    """
    merged = [
        (-similarity, answer.sequences[place], answer.ids[place])
        for answer, first, last in found
        for place, similarity in zip(
            answer.which[first:last].tolist(),
            answer.similarities[first:last].tolist(),
            strict=True,
        )
    ]
    if len(found) > 1:
        merged = sorted(set(merged))
    return [Match(sequence, -negative, ident) for negative, sequence, ident in merged]


def next_named(frame: MatchFrame, offset: int) -> int:
    """Return the first offset from ``offset`` on of which the frame says something, or its end."""
    named = [frame.end]
    for array in (frame.offsets, frame.accounted or b""):
        offsets = np.frombuffer(array, U32)
        place = int(np.searchsorted(offsets, max(0, offset - frame.start)))
        if place < len(offsets):
            named.append(frame.start + int(offsets[place]))
    return min(named)


def judged_of(
    frame: MatchFrame, low: int, high: int
) -> tuple[deque[Judged], frozenset[int] | None]:
    """Return what shard 0 says of the documents from ``low`` to ``high``."""
    start = frame.start
    offsets = np.frombuffer(frame.offsets, U32)
    first, last = np.searchsorted(offsets, (max(0, low - start), high - start)).tolist()
    base = (frame.number << POSITION_BITS) + frame.first
    judged = deque(
        map(
            Judged,
            (offsets[first:last].astype(np.int64) + start).tolist(),
            np.frombuffer(frame.checksums, U64)[first:last].tolist(),
            range(base + first, base + last),
        )
    )
    if frame.accounted is None:
        return judged, None
    accounted = np.frombuffer(frame.accounted, U32).astype(np.int64) + start
    return judged, frozenset(accounted.tolist())


def add_found(frame: MatchFrame, low: int, high: int, found: dict[int, list[Found]]) -> None:
    """Add the matches of the documents from ``low`` to ``high``, by offset."""
    if not frame.matched:
        return
    matched = np.frombuffer(frame.matched, U32)
    first, last = np.searchsorted(matched, (max(0, low - frame.start), high - frame.start)).tolist()
    if first == last:
        return
    ends = [0, *accumulate(np.frombuffer(frame.counts, U16)[:last].tolist())]
    answer = _Unpacked(
        np.frombuffer(frame.which, U16),
        np.frombuffer(frame.similarities, F32),
        np.frombuffer(frame.sequences, U64).tolist(),
        frame.ids.unpack(),
    )
    start = frame.start
    for row, offset in enumerate(matched[first:last].tolist(), first):
        of_document = Found(answer, ends[row], ends[row + 1])
        if start + offset in found:
            found[start + offset].append(of_document)
        else:
            found[start + offset] = [of_document]
