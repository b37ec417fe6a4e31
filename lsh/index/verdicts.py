"""What is kept of a verdict, for documents that are sent again: `BucketRules.same_id` is ignore.

A verdict names documents by their numbers in the index, not by their ids. So a document that is
forgotten is forgotten in all verdicts. A verdict takes 24 bytes for each match. If one of them has
a containment, it takes 32 bytes for each match, and one before them: a 1. So its length is odd.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from lsh.index.layout import unpack_record, without_sketch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lsh.index.batch import Match
    from lsh.index.buckets import BucketReader
    from lsh.index.match import Known

__all__ = ["NOBODY", "Naming", "Verdict", "VerdictMatch", "pack_verdict", "unpack_verdict"]

NOBODY = -1
"""In place of the number of a document that was forgotten before the verdict was stored."""

_MATCH = struct.Struct("<Qdq")
_CONTAINED = struct.Struct("<Qdqd")
_WITH_CONTAINMENT = b"\x01"


class VerdictMatch(NamedTuple):
    """A match of a verdict; ``number`` is that of the matched document, or `NOBODY`."""

    sequence: int
    similarity: float
    number: int
    containment: float | None = None


Verdict = list[VerdictMatch]
"""The matches of a document, best first, at most `BucketRules.max_matches`."""


def pack_verdict(verdict: Verdict) -> bytes:
    """Return the bytes of a verdict: for each match, its values in 8 bytes each.

    It has 0 for a containment that there isn't.
    """
    if all(match.containment is None for match in verdict):
        return b"".join(_MATCH.pack(*match[:3]) for match in verdict)
    return _WITH_CONTAINMENT + b"".join(
        _CONTAINED.pack(*match[:3], match.containment or 0.0) for match in verdict
    )


def unpack_verdict(packed: bytes) -> Verdict:
    """Return the verdict of these bytes.

    Raises ValueError if they are not whole matches.
    """
    if not len(packed) % _MATCH.size:
        return [VerdictMatch(*match) for match in _MATCH.iter_unpack(packed)]
    matches = packed[1:]
    if packed[:1] != _WITH_CONTAINMENT or len(matches) % _CONTAINED.size:
        message = f"{len(packed)} bytes are not a verdict"
        raise ValueError(message)
    return [
        VerdictMatch(sequence, similarity, number, share or None)
        for sequence, similarity, number, share in _CONTAINED.iter_unpack(matches)
    ]


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
        self._numbers = {known.names[number][0]: number for number in sorted(known.names)}

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
        for sequence in sorted(sequences):
            number = self._numbers[sequence]
            if number in self._known.forgotten:
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
        ids = {self._known.names[number][1] for number in old.values()}
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
                self._records.append(without_sketch(self._known.packed[number]))
        return moved
