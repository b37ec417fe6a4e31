"""Writes down the changes that a batch makes to an index, when it is known what gets a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.index.buckets import Buckets
from lsh.index.clock import NO_TIME
from lsh.index.decision import NewCells
from lsh.index.layout import (
    BEYOND,
    MOST_DOCUMENTS,
    pack_records,
    with_others,
    without_sketch,
)
from lsh.index.naming import Naming
from lsh.index.renewed import by_document
from lsh.ordered import first_of_each, lengths, without_repeats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.batch import DocumentBatch
    from lsh.index.buckets import BucketReader
    from lsh.index.cells import Cells
    from lsh.index.decision import Decision
    from lsh.index.growing import GrowingBuckets
    from lsh.index.known import Known
    from lsh.index.renewed import RenewedEntries
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
        renewed: RenewedEntries,
        oldest: int | None,
        *,
        new: NDArray[np.bool_],
        kept: NDArray[np.bool_],
    ) -> None:
        """Write down buckets, records and renewals.

        renewed: the entries that were renewed. oldest: the least time of an entry after the batch,
        in ms; None: any. new: bool[r], the runs of cells whose bucket didn't exist. kept: bool[r],
        those that one document alone came to.
        """
        first, numbers = self._first, self._numbers
        made.records = self._records(kept)
        moves = self._renew(made, buckets, renewed)
        buckets.note(moves.buckets)
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
        moves.apply(changed)
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

    def _renew(self, made: Decision, buckets: GrowingBuckets, renewed: RenewedEntries) -> _Moves:
        """Write down the renewals.

        A document that the index wants to move gets another number in the buckets where it was
        renewed. Returns these.
        """
        if not len(renewed.numbers):
            return _Moves.none()
        documents = without_repeats(renewed.numbers)
        documents = documents[~self._known.are_gone(documents)]
        staying = documents[documents >= self._reader.moved_below]
        final, own = staying.copy(), staying >= self._first
        final[own] = self._numbers[staying[own] - self._first]
        renewals = self._known.renewed.of(staying)
        made.renewals = dict(zip(final.tolist(), renewals, strict=True))
        moving = np.isin(renewed.numbers, documents[: len(documents) - len(staying)])
        return self._move(made, buckets, renewed.take(moving))

    def _move(self, made: Decision, buckets: GrowingBuckets, renewed: RenewedEntries) -> _Moves:
        """Give documents other numbers in the buckets where they were renewed, and still are."""
        contents = buckets.contents(without_repeats(renewed.buckets))
        there = _named(contents.places, contents.sizes, contents.entries)
        held = renewed.take(
            np.isin(_joined(renewed.buckets, renewed.numbers), there[contents.entries != BEYOND])
        )
        documents, first = without_repeats(held.numbers), self._first + len(made.records)
        made.records += map(with_others, self._known.packed(documents.tolist()))
        order: NDArray[np.int64] = np.argsort(held.numbers, kind="stable")
        ordered = held.take(order)
        earliest = np.full(len(ordered.numbers), NO_TIME)
        times = self._known.renewed.latest(ordered.numbers, ordered.columns, earliest)
        firsts = np.flatnonzero(first_of_each(ordered.numbers))
        ends = firsts + lengths(firsts, len(times))
        renewals = by_document(ordered.columns, times, firsts, ends)
        made.renewals |= dict(enumerate(renewals, first))
        others = first + np.searchsorted(documents, held.numbers)
        return _Moves(held.buckets, held.numbers, others)

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


class _Moves(NamedTuple):
    """Entries that get other numbers: int64[m] each.

    buckets: the places of their buckets. numbers: their numbers until now.
    """

    buckets: NDArray[np.int64]
    numbers: NDArray[np.int64]
    others: NDArray[np.int64]

    @classmethod
    def none(cls) -> _Moves:
        """Return no moves."""
        return cls(*[np.empty(0, np.int64)] * 3)

    def apply(self, changed: Buckets) -> None:
        """Replace the entries, in place."""
        if not len(self.buckets):
            return
        keys = _joined(self.buckets, self.numbers)
        order = np.argsort(keys)
        keys, others = keys[order], self.others[order]
        own = _named(changed.places, changed.sizes, changed.entries)
        at = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
        moved = (keys[at] == own) & (changed.entries != BEYOND)
        changed.entries[moved] = others[at[moved]]


def _named(
    places: NDArray[np.int64], sizes: NDArray[np.int64], entries: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return what says for each entry of buckets in which one it is, and who: int64[e]."""
    return _joined(np.repeat(places, sizes), entries)


def _joined(buckets: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return buckets' places and documents' numbers as one number each: int64[e]."""
    joined: NDArray[np.int64] = buckets << _BITS | numbers & _LOW_BITS
    return joined
