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
    from lsh.index.layout import Bucket
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
    known = Known.of(reader, buckets.values())
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

    @classmethod
    def of(cls, reader: BucketReader, buckets: Iterable[Bucket]) -> Known:
        """Read the records of all documents in these buckets.

        Raises RecordMissing if a document has none.
        """
        named = sorted({number for bucket in buckets for number in bucket})
        known = cls()
        for number, packed in zip(named, reader.records(named), strict=True):
            if packed is None:
                raise RecordMissing(number)
            record = unpack_record(packed)
            known.add(number, record.sketch, record.sequence, record.id)
        return known

    def add(self, number: int, sketch: bytes, sequence: int, ident: bytes) -> None:
        """Add a document that a bucket names."""
        self.sketches[number] = sketch
        self.names[number] = (sequence, ident)

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

    similar: estimated similarities by number, as `Known.similar` returns them. Later documents
        have higher numbers.
    """
    best = sorted(
        (-estimate, number) for number, estimate in similar.items() if estimate >= rules.threshold
    )[: rules.max_matches]
    return [
        Match(sequence, -negative, ident)
        for negative, number in best
        for sequence, ident in [known.names[number]]
    ]
