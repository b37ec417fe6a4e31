"""The numbers by which verdicts that are kept name documents; see `lsh.index.verdicts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.index.layout import id_of, unpack_record, without_sketch
from lsh.index.verdicts import NOBODY, VerdictMatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lsh.index.batch import Match
    from lsh.index.buckets import BucketReader
    from lsh.index.known import Known
    from lsh.index.verdicts import Verdict

__all__ = ["Naming"]


class Naming:
    """Finds the numbers under which the documents of verdicts stay as long as the verdicts.

    An index may give back space by number. What is in front of `BucketReader.moved_below` goes
    before the documents of the batch, so a match that is there gets one more record, without a
    sketch.
    """

    def __init__(
        self, reader: BucketReader, known: Known, final: Sequence[int], records: list[bytes]
    ) -> None:
        """Take what is known of candidates.

        final: the numbers of the batch's documents. records: those that the batch adds; more may
        be added.
        """
        self._reader = reader
        self._known = known
        self._first = reader.inserted
        self._final = final
        self._records = records
        self._numbers = known.learned()

    def verdicts(self, matches: Sequence[tuple[int, list[Match]]]) -> dict[int, Verdict]:
        """Return verdicts by the numbers of their documents.

        matches: the row and the matches of each document that has any.
        """
        stay = self._staying({match.sequence for _, some in matches for match in some})
        return {
            self._final[row]: [
                VerdictMatch(one.sequence, one.similarity, stay[one.sequence], one.containment)
                for one in some
            ]
            for row, some in matches
        }

    def _staying(self, sequences: Iterable[int]) -> dict[int, int]:
        """Return numbers that stay, by sequence number."""
        stay: dict[int, int] = {}
        old: dict[int, int] = {}
        ordered = sorted(sequences)
        numbers = [self._numbers[sequence] for sequence in ordered]
        gone = self._known.are_gone(np.array(numbers, np.int64)).tolist()
        for sequence, number, is_gone in zip(ordered, numbers, gone, strict=True):
            if is_gone:
                stay[sequence] = NOBODY
            elif number >= self._first:
                stay[sequence] = self._final[number - self._first]
            elif number >= self._reader.moved_below:
                stay[sequence] = number
            else:
                old[sequence] = number
        return stay | self._moved(old) if old else stay

    def _moved(self, old: dict[int, int]) -> dict[int, int]:
        """Return numbers of documents that have only old ones: other ones, or new ones."""
        numbers = sorted(old.values())
        records = dict(zip(numbers, self._known.packed(numbers), strict=True))
        ids = set(map(id_of, records.values()))
        found = self._reader.identified(ids).values()
        below = self._reader.moved_below
        later = sorted(number for some in found for number in some if number >= below)
        moved = {
            unpack_record(record).sequence: number
            for number, record in zip(later, self._reader.records(later), strict=True)
            if record
        }
        for sequence, number in old.items():
            if sequence not in moved:
                moved[sequence] = self._first + len(self._records)
                self._records.append(without_sketch(records[number]))
        return moved
