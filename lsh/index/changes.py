"""Writes down the changes that a batch makes to an index, when it is known what gets a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.index.buckets import Buckets
from lsh.index.decision import NewCells
from lsh.index.layout import (
    BEYOND,
    MOST_DOCUMENTS,
    pack_records,
    with_others,
    without_sketch,
)
from lsh.index.naming import Naming

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from lsh.index.batch import DocumentBatch
    from lsh.index.buckets import BucketReader
    from lsh.index.cells import Cells
    from lsh.index.decision import Decision
    from lsh.index.growing import GrowingBuckets
    from lsh.index.known import Known
    from lsh.index.rules import BucketRules

__all__ = ["Changes"]

# An index has fewer documents at a time than there are numbers of so many bits.
_BITS = MOST_DOCUMENTS.bit_length() - 1
_LOW_BITS = MOST_DOCUMENTS - 1


class Changes:
    """The changes that a batch of n documents makes; they are written into its decision."""

    def __init__(  # noqa: PLR0913, PLR0917 -- what was judged, and what came of it
        self,
        reader: BucketReader,
        batch: DocumentBatch,
        rules: BucketRules,
        cells: Cells,
        known: Known,
        recorded: NDArray[np.bool_],
    ) -> None:
        """Number the documents that get a record: bool[n]."""
        self._reader = reader
        self._batch = batch
        self._rules = rules
        self._cells = cells
        self._known = known
        self._recorded = recorded
        self._first = reader.inserted
        self._numbers: NDArray[np.int64] = self._first + np.cumsum(recorded) - recorded

    def write(  # noqa: PLR0913 -- all that changes
        self,
        made: Decision,
        buckets: GrowingBuckets,
        renewed: Mapping[int, Mapping[int, int]],
        oldest: int | None,
        *,
        new: NDArray[np.bool_],
        kept: NDArray[np.bool_],
    ) -> None:
        """Write down buckets, records and renewals.

        renewed: the columns in which documents were renewed, by their number and the bucket's.
        oldest: the least time of an entry after the batch, in ms; None: any. new: bool[r], the
        runs of cells whose bucket didn't exist. kept: bool[r], those that one document alone came
        to.
        """
        first, numbers = self._first, self._numbers
        made.records = self._records(kept)
        moves = self._renew(made, buckets, renewed)
        if moves:
            buckets.note(np.array([place for place, _ in moves], np.int64))
        changed = buckets.changed(oldest)
        alone = np.append(new, False)[np.minimum(changed.places, len(new))] & (changed.sizes == 1)
        alone[alone] = changed.entries[changed.starts[alone]] != BEYOND
        runs, holders = changed.places[alone], self._cells.rows[self._cells.starts]
        holders[runs] = changed.entries[changed.starts[alone]] - first
        kept[runs] = True
        made.cells = NewCells(self._cells.keys.take(kept), numbers[holders[kept]])
        changed = changed.take(np.flatnonzero(~alone))
        own = changed.entries >= first
        changed.entries[own] = numbers[changed.entries[own] - first]
        if moves:
            _move(changed, moves)
        made.changed = buckets.keys(changed.places)
        made.buckets = Buckets(np.arange(len(changed)), changed.sizes, changed.entries)

    def _records(self, kept: NDArray[np.bool_]) -> list[bytes]:
        """Return the records of the documents that get one; kept: bool[r]."""
        batch, cells, new = self._batch, self._cells, None
        recorded = np.flatnonzero(self._recorded)
        if self._rules.rows:
            places = np.zeros(1 << 8, np.int64)
            places[np.asarray(batch.columns)] = np.arange(len(batch.columns))
            new = np.zeros((len(batch.ids), len(batch.columns)), bool)
            new[cells.rows[cells.starts[kept]], places[cells.keys.columns[kept]]] = True
            new = new[recorded]
        return pack_records(
            batch.sequences[recorded],
            batch.times[recorded],
            batch.shingles[recorded],
            batch.sketches[recorded],
            [batch.ids[row] for row in recorded.tolist()],
            new=new,
        )

    def _renew(
        self, made: Decision, buckets: GrowingBuckets, renewed: Mapping[int, Mapping[int, int]]
    ) -> dict[tuple[int, int], int]:
        """Write down the renewals.

        A document that the index wants to move gets another number in the buckets where it was
        renewed. Returns these numbers by bucket and former number.

        renewed: as of `write`.
        """
        if not renewed:
            return {}
        first, known = self._first, self._known
        below, final = self._reader.moved_below, self._numbers.tolist()
        old = {place for number, columns in renewed.items() if number < below for place in columns}
        lists = buckets.contents(np.array(sorted(old), np.int64)).by_place()
        moves: dict[tuple[int, int], int] = {}
        for number, columns in sorted(renewed.items()):
            if known.is_gone(number):
                continue
            renewals = known.renewals[number]
            if number >= first:
                made.renewals[final[number - first]] = renewals
            elif number >= below:
                made.renewals[number] = renewals
            else:
                held = [place for place in columns if number in lists[place]]
                moved = first + len(made.records)
                moves |= {(place, number): moved for place in held}
                if held:
                    made.records.append(with_others(known.packed(number)))
                    held_in = [columns[place] for place in held]
                    made.renewals[moved] = {column: renewals[column] for column in held_in}
        return moves

    def remember(self, made: Decision, inserted: NDArray[np.bool_]) -> None:
        """Write down what is needed to answer for documents that are sent again.

        inserted: bool[n], the documents that a bucket names.
        """
        recorded = self._recorded
        for number in self._numbers[recorded & ~inserted].tolist():
            place = number - self._first
            made.records[place] = without_sketch(made.records[place])
        matches = [(row, some) for row, some in made.matches.items() if recorded[row]]
        if matches:
            naming = Naming(self._reader, self._known, self._numbers.tolist(), made.records)
            made.verdicts = naming.verdicts(matches)


def _move(buckets: Buckets, moves: Mapping[tuple[int, int], int]) -> None:
    """Replace entries, in place.

    moves: the other numbers, by the bucket's place and the former number.
    """
    keys = np.array([place << _BITS | number & _LOW_BITS for place, number in moves], np.int64)
    order = np.argsort(keys)
    keys, others = keys[order], np.fromiter(moves.values(), np.int64)[order]
    places = np.repeat(buckets.places, buckets.sizes)
    own = places << _BITS | buckets.entries & _LOW_BITS
    at = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
    moved = (keys[at] == own) & (buckets.entries != BEYOND)
    buckets.entries[moved] = others[at[moved]]
