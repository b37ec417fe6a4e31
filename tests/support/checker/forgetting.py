"""No match names a document that a tombstone before it has forgotten."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from tests.support.checker.history import (
    FrameRange,
    History,
    Source,
    ident_of,
    is_tombstone,
    source,
    verdict_of,
)
from worker.bus import Record

Place = tuple[int, int]
"""A record's place in the one order: the number of its frame, and its offset."""


def forgetting(history: History) -> Iterator[str]:
    """Of the documents before it with a matched id, one stands after the id's last tombstone."""
    if history.frames is None:
        return
    order = Order(history.frames)
    tombstones = order.places(
        (forgotten, _here(record))
        for record in history.inputs
        if (forgotten := history.forgets(record)) is not None
    )
    judged = [
        record
        for record in (*history.unique, *history.duplicate)
        if not is_tombstone(record) and record.value is not None
    ]
    named = order.places((ident_of(record).encode(), source(record)) for record in judged)
    for record in judged if tombstones else ():
        at = order.place(source(record))
        for ident, _ in verdict_of(record).matches:
            gone = _last_before(tombstones.get(ident.encode(), ()), at)
            last = _last_before(named.get(ident.encode(), ()), at)
            if gone is not None and last is not None and last < gone:
                yield f"{source(record)} matches {ident}, which was forgotten at {gone}"


class Order:
    """Where records of the documents are in the one order."""

    def __init__(self, frames: Sequence[FrameRange]) -> None:
        self._frames: dict[int, list[FrameRange]] = defaultdict(list)
        for frame in sorted(frames, key=lambda one: one.end):
            self._frames[frame.partition].append(frame)

    def places(self, records: Iterable[tuple[bytes, Source]]) -> dict[bytes, list[Place]]:
        """Return the places of records by their ids, ascending."""
        found: dict[bytes, list[Place]] = defaultdict(list)
        for ident, at in records:
            if (place := self.place(at)) is not None:
                found[ident].append(place)
        return {ident: sorted(places) for ident, places in found.items()}

    def place(self, at: Source) -> Place | None:
        """Return the place of a record; None if no frame covers it."""
        partition, offset = at
        frames = self._frames[partition]
        found = bisect_left(frames, offset + 1, key=lambda one: one.end)
        if found == len(frames) or frames[found].start > offset:
            return None
        return frames[found].number, offset


def _here(record: Record) -> Source:
    return record.partition, record.offset


def _last_before(places: Sequence[Place], at: Place | None) -> Place | None:
    before = bisect_left(places, at) if at is not None else 0
    return places[before - 1] if before else None
