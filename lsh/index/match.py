"""Matching: finds the earlier documents that are near duplicates of a document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lsh.index.batch import Match
from lsh.index.buckets import RecordMissing
from lsh.index.layout import BEYOND, Record, sketches_of, unpack_record
from lsh.index.shares import sufficient
from lsh.sketch import similarity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from lsh.index.buckets import BucketReader
    from lsh.index.layout import Bucket, Renewals
    from lsh.index.rules import BucketRules

__all__ = ["Known", "best_matches", "best_of"]


@dataclass(slots=True)
class Known:
    """What is known of documents that buckets name, by number.

    Of most, only the sketch is ever needed. So their records stay packed until more is.
    """

    sketches: dict[int, bytes] = field(default_factory=dict)
    renewals: dict[int, Renewals] = field(default_factory=dict)
    packed: dict[int, bytes] = field(default_factory=dict)
    forgotten: set[int] = field(default_factory=set)
    _records: dict[int, Record] = field(default_factory=dict)

    def read(self, reader: BucketReader, buckets: Iterable[Bucket], window: int | None) -> None:
        """Read the records of all documents in these buckets; with a window, renewals as well.

        Raises RecordMissing if a document has none.
        """
        self.learn(reader, {number for bucket in buckets for number in bucket}, window)

    def learn(self, reader: BucketReader, named: set[int], window: int | None) -> None:
        """Read the records of these documents; with a window, their renewals as well.

        Raises RecordMissing if a document has none.
        """
        new = sorted(named.difference((BEYOND,), self.sketches, self.forgotten))
        records = dict(zip(new, reader.records(new), strict=True))
        kept = {number: packed for number, packed in records.items() if packed}
        for number in new if len(kept) < len(new) else ():
            if records[number] is None:
                raise RecordMissing(number)
            if not records[number]:
                self.forgotten.add(number)
        self.packed |= kept
        self.sketches.update(zip(kept, sketches_of(kept.values()), strict=True))
        if window is not None and new:
            self.renewals |= reader.renewals(new)

    def add(self, number: int, record: Record) -> None:
        """Add a document that a bucket names."""
        self.sketches[number] = record.sketch
        self._records[number] = record

    def record(self, number: int) -> Record:
        """Return a document's record."""
        found = self._records.get(number)
        if found is None:
            found = self._records[number] = unpack_record(self.packed[number])
        return found

    def time(self, number: int, column: int) -> int:
        """Return the time of a document's entry in a column, in ms."""
        renewed = self.renewals.get(number)
        own = self.record(number).time
        return own if renewed is None else renewed.get(column, own)

    def live(self, bucket: Bucket, column: int, oldest: int | None) -> Bucket:
        """Return the entries of a column's bucket that were not forgotten, and are not too old.

        oldest: the least time of an entry, in ms; None: any.
        """
        kept = [number for number in bucket if number not in self.forgotten]
        if oldest is None:
            return kept
        return [n for n in kept if n == BEYOND or self.time(n, column) >= oldest]

    def similar(self, sketch: NDArray[np.uint8], buckets: Iterable[Bucket]) -> dict[int, float]:
        """Return the estimated similarity of a document to each candidate.

        sketch: uint8[slots], the document's sketch.
        buckets: the buckets of its keys; the documents in them are its candidates.

        Returns the estimates by the candidates' numbers.
        """
        candidates = list({number for bucket in buckets for number in bucket}.difference((BEYOND,)))
        if not candidates:
            return {}
        others = np.frombuffer(b"".join(map(self.sketches.__getitem__, candidates)), np.uint8)
        estimates = similarity(sketch, others.reshape(len(candidates), -1)).tolist()
        return dict(zip(candidates, estimates, strict=True))

    def containing(
        self, size: int, similar: dict[int, float], rules: BucketRules
    ) -> dict[int, float]:
        """Return the estimated share of a document that is in each candidate, if it is enough.

        size: the number of the document's different shingles. similar: its estimated similarity
            to the candidates.

        Returns the shares by the candidates' numbers.
        """
        if rules.containment is None or not similar:
            return {}
        alike = np.fromiter(similar.values(), np.float64)
        sizes = np.array([self.record(number).shingles for number in similar])
        slots = len(self.sketches[next(iter(similar))])
        shares = sufficient(alike, size, sizes, slots, rules).tolist()
        return {number: share for number, share in zip(similar, shares, strict=True) if share}


def best_matches(
    similar: dict[int, float], containing: dict[int, float], known: Known, rules: BucketRules
) -> list[Match]:
    """Return the candidates that match, most similar first, ties oldest first.

    similar: estimated similarities by number, as `Known.similar` returns them. A document that was
        renewed may have several numbers.
    containing: estimated shares that are enough, as `Known.containing` returns them.
    """
    matches = []
    for number, estimate in similar.items():
        share = containing.get(number)
        if estimate >= rules.threshold or share is not None:
            record = known.record(number)
            matches.append(Match(record.sequence, estimate, record.id, share))
    return best_of(matches, rules)


def best_of(matches: Sequence[Match], rules: BucketRules) -> list[Match]:
    """Return a document's best matches, most similar first, ties oldest first, each once."""
    if len(matches) == 1:
        return list(matches)[: rules.max_matches]
    once = {one.sequence: one for one in matches}.values()
    return sorted(once, key=lambda one: (-one.similarity, one.sequence))[: rules.max_matches]
