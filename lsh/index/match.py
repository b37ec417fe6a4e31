"""Matching: finds the earlier documents that are near duplicates of a document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lsh.index.batch import Match
from lsh.index.buckets import RecordMissing
from lsh.index.cells import cells_of
from lsh.index.layout import unpack_record
from lsh.sketch import similarity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from lsh.index.buckets import BucketReader
    from lsh.index.layout import Bucket, Renewals
    from lsh.index.rules import BucketRules

__all__ = ["Known", "best_matches", "match"]


def match(
    reader: BucketReader,
    columns: Sequence[int],
    keys: NDArray[np.uint64],
    sketches: NDArray[np.uint8],
    rules: BucketRules,
) -> dict[int, list[Match]]:
    """Return the matches of n queries among the documents in the buckets; change nothing.

    columns: c numbers of columns.
    keys: uint64[c, n], the queries' keys in each column.
    sketches: uint8[n, slots], the queries' sketches.

    Returns the matches of each query that has any, best first, by number of the query.

    Raises RecordMissing if a bucket names a document that has no record.
    """
    if not keys.size:
        return {}
    cells = cells_of(columns, keys)
    buckets = reader.buckets(cells.keys)
    known = Known.of(reader, buckets.values(), rules.window_ms)
    if rules.window_ms is not None:
        oldest = reader.now - rules.window_ms
        columns_of = cells.keys.columns
        buckets = {
            run: known.live(bucket, int(columns_of[run]), oldest) for run, bucket in buckets.items()
        }
    matches = {}
    for row, runs in cells.by_row(np.array(list(buckets), np.int64)):
        similar = known.similar(sketches[row], map(buckets.__getitem__, runs))
        best = best_matches(similar, known, rules)
        if best:
            matches[row] = best
    return matches


@dataclass(slots=True)
class Known:
    """Sketches, sequence numbers and ids of the documents that buckets name, by number."""

    sketches: dict[int, bytes] = field(default_factory=dict)
    names: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    renewals: dict[int, Renewals] = field(default_factory=dict)
    packed: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, reader: BucketReader, buckets: Iterable[Bucket], window: int | None) -> Known:
        """Read the records of all documents in these buckets; with a window, their times as well.

        Raises RecordMissing if a document has none.
        """
        named = sorted({number for bucket in buckets for number in bucket})
        known = cls()
        for number, packed in zip(named, reader.records(named), strict=True):
            if packed is None:
                raise RecordMissing(number)
            record = unpack_record(packed)
            known.add(number, record.sketch, record.sequence, record.id, record.time)
            known.packed[number] = packed
        if window is not None:
            known.renewals = reader.renewals(named)
        return known

    def add(self, number: int, sketch: bytes, sequence: int, ident: bytes, time: int) -> None:
        """Add a document that a bucket names."""
        self.sketches[number] = sketch
        self.names[number] = (sequence, ident)
        self.times[number] = time

    def time(self, number: int, column: int) -> int:
        """Return the time of a document's entry in a column, in ms."""
        renewed = self.renewals.get(number)
        own = self.times[number]
        return own if renewed is None else renewed.get(column, own)

    def live(self, bucket: Bucket, column: int, oldest: int) -> Bucket:
        """Return the entries of a column's bucket that are not older than ``oldest``, in ms."""
        return [number for number in bucket if self.time(number, column) >= oldest]

    def similar(self, sketch: NDArray[np.uint8], buckets: Iterable[Bucket]) -> dict[int, float]:
        """Return the estimated similarity of a document to each candidate.

        sketch: uint8[slots], the document's sketch.
        buckets: the buckets of its keys; the documents in them are its candidates.

        Returns the estimates by the candidates' numbers.
        """
        candidates = list({number for bucket in buckets for number in bucket})
        if not candidates:
            return {}
        others = np.frombuffer(b"".join(map(self.sketches.__getitem__, candidates)), np.uint8)
        estimates = similarity(sketch, others.reshape(len(candidates), -1)).tolist()
        return dict(zip(candidates, estimates, strict=True))


def best_matches(similar: dict[int, float], known: Known, rules: BucketRules) -> list[Match]:
    """Return the candidates at or above the threshold, most similar first, ties oldest first.

    similar: estimated similarities by number, as `Known.similar` returns them. A document that was
        renewed may have several numbers.
    """
    best = {
        known.names[number]: estimate
        for number, estimate in similar.items()
        if estimate >= rules.threshold
    }
    ordered = sorted((-estimate, sequence, ident) for (sequence, ident), estimate in best.items())
    return [
        Match(sequence, -negative, ident)
        for negative, sequence, ident in ordered[: rules.max_matches]
    ]
