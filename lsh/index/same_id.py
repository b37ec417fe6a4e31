"""What a document is whose id the index already has: `BucketRules.same_id`.

duplicate: a document like any other. It may match the earlier one.
replace: the earlier one is forgotten just before, as by a tombstone. So they never match.
ignore: it was sent again. Its matches are those of the first one, and it changes nothing.

To be ignored, a document needs a first one that isn't older than the window by now, and was not
forgotten. Ids, times and what is forgotten decide that, and nothing else. So all indexes that
divide the columns of the same documents agree.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.index.batch import DocumentBatch, Forgotten, Match
from lsh.index.buckets import RecordMissing
from lsh.index.clock import NO_TIME
from lsh.index.layout import id_of, unpack_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from lsh.index.buckets import BucketReader
    from lsh.index.clock import Clock, Dated

__all__ = ["First", "Repeats", "replacing"]


def replacing(reader: BucketReader, batch: DocumentBatch) -> DocumentBatch:
    """Return a batch in which a document whose id came before forgets it just before it comes."""
    known, own = set(reader.identified(batch.ids)), []
    for row, ident in enumerate(batch.ids):
        if ident in known:
            own.append(Forgotten(row, ident))
        known.add(ident)
    both = sorted([*batch.forgotten, *own], key=attrgetter("row"))
    return replace(batch, forgotten=both)


class First(NamedTuple):
    """The first document with an id.

    row: its row in the batch; -1 if it came before that. number: its number in the index; -1 if it
    is in the batch. time: as of when it counts, in ms.
    """

    row: int
    number: int
    time: int


@dataclass(frozen=True, slots=True)
class Repeats:
    """The documents of a batch that were sent again.

    batch: the n documents. firsts: the first document of each that was sent again, by row.
    rows: int64[m], the rows of the others.
    """

    batch: DocumentBatch
    firsts: dict[int, First]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, reader: BucketReader, batch: DocumentBatch, dates: Dated) -> Repeats:
        """Return which documents of a batch were sent again; its times are those of ``dates``."""
        stored = _stored(reader, batch.ids, dates.clock)
        firsts = _firsts(batch, dates.oldest, stored)
        rows = np.delete(np.arange(len(batch.ids)), list(firsts))
        return cls(batch, firsts, rows)

    def others(self) -> DocumentBatch:
        """Return the batch without the documents that were sent again."""
        batch, rows = self.batch, self.rows
        if not self.firsts:
            return batch
        places = np.searchsorted(rows, [one.row for one in batch.forgotten]).tolist()
        return DocumentBatch(
            sequences=batch.sequences[rows],
            times=batch.times[rows],
            ids=[batch.ids[row] for row in rows.tolist()],
            shingles=batch.shingles[rows],
            columns=batch.columns,
            keys=batch.keys[:, rows],
            sketches=batch.sketches[rows],
            forgotten=[
                Forgotten(place, one.id) for place, one in zip(places, batch.forgotten, strict=True)
            ],
        )

    def matches(
        self, reader: BucketReader, found: Mapping[int, list[Match]]
    ) -> dict[int, list[Match]]:
        """Return the matches of all documents of the batch, by row.

        A match has no id if its document was forgotten after the first one.

        found: the matches of the others, by their rows among themselves.

        Raises RecordMissing if a verdict names a document that has no record.
        """
        rows = self.rows.tolist()
        matches = {rows[row]: some for row, some in found.items()}
        numbers = sorted({first.number for first in self.firsts.values() if first.number >= 0})
        stored = _verdicts(reader, numbers)
        gone: dict[bytes, list[int]] = {}
        for one in self.batch.forgotten:
            gone.setdefault(one.id, []).append(one.row)
        for row, first in self.firsts.items():
            some = matches.get(first.row, []) if first.row >= 0 else stored.get(first.number, [])
            if some:
                matches[row] = [_named(match, gone, first.row, row) for match in some]
        return dict(sorted(matches.items()))


def _firsts(
    batch: DocumentBatch, oldest: NDArray[np.int64] | None, stored: Mapping[bytes, First]
) -> dict[int, First]:
    """Return the first document of each that was sent again, by row.

    oldest: int64[n], the least time of one that counts, at each of the batch; None: any.
    """
    known, left, found = dict(stored), deque(batch.forgotten), {}
    since = [NO_TIME] * len(batch.ids) if oldest is None else oldest.tolist()
    for row, (ident, time, least) in enumerate(
        zip(batch.ids, batch.times.tolist(), since, strict=True)
    ):
        while left and left[0].row <= row:
            known.pop(left.popleft().id, None)
        first = known.get(ident)
        if first is not None and first.time >= least:
            found[row] = first
        else:  # One that is older than the window now is the first of none.
            known[ident] = First(row, -1, time)
    return found


def _stored(reader: BucketReader, ids: Iterable[bytes], clock: Clock) -> dict[bytes, First]:
    """Return the first document of each id that the index has: of several, the newest.

    A document that has moved has several numbers; its verdict is under the lowest.
    """
    identified = reader.identified(ids)
    records = _records(reader, {number for some in identified.values() for number in some})
    firsts = {}
    for ident, numbers in identified.items():
        known = {number: unpack_record(records[number]) for number in numbers}
        number = max(known, key=lambda one: (known[one].sequence, -one))
        (time,) = clock.settled(np.array([known[number].time])).tolist()
        firsts[ident] = First(-1, number, time)
    return firsts


def _verdicts(reader: BucketReader, numbers: list[int]) -> dict[int, list[Match]]:
    """Return the stored matches of documents that have any, by their numbers."""
    verdicts = reader.verdicts(numbers)
    named = {one.number for some in verdicts.values() for one in some}
    ids = {number: id_of(record) for number, record in _records(reader, named).items() if record}
    return {
        number: [
            Match(one.sequence, one.similarity, ids.get(one.number, b""), one.containment)
            for one in some
        ]
        for number, some in verdicts.items()
    }


def _records(reader: BucketReader, numbers: set[int]) -> dict[int, bytes]:
    """Return the records of documents by their numbers; no bytes for one that was forgotten."""
    ordered = sorted(number for number in numbers if number >= 0)
    found = {}
    for number, record in zip(ordered, reader.records(ordered), strict=True):
        if record is None:
            raise RecordMissing(number)
        found[number] = record
    return found


def _named(match: Match, gone: Mapping[bytes, list[int]], after: int, row: int) -> Match:
    """Return a match without its id if that was forgotten after one row and before another."""
    if any(after < one <= row for one in gone.get(match.id, ())):
        return match._replace(id=b"")
    return match
