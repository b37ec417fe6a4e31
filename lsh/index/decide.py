"""Decides verdicts: matches a batch against the buckets and, in order, against itself."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.exact import without_repeats
from lsh.index.apart import Apart, Met, judged, rounds
from lsh.index.buckets import Buckets
from lsh.index.cells import by_row, cells_of
from lsh.index.chains import Chains
from lsh.index.growing import GrowingBuckets
from lsh.index.implied import read_buckets
from lsh.index.layout import (
    BEYOND,
    MOST_DOCUMENTS,
    BucketKeys,
    Record,
    pack_records,
    with_others,
    without_sketch,
)
from lsh.index.match import Known, best_matches
from lsh.index.naming import Naming
from lsh.index.same_id import Repeats, replacing
from lsh.index.update import update

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lsh.index.apart import Verdicts
    from lsh.index.batch import DocumentBatch, Match
    from lsh.index.buckets import BucketReader
    from lsh.index.cells import Cells
    from lsh.index.layout import Bucket, Renewals
    from lsh.index.rules import BucketRules
    from lsh.index.verdicts import Verdict

__all__ = ["Decision", "NewCells", "decide"]

# An index has fewer documents at a time than there are numbers of so many bits.
_BITS = MOST_DOCUMENTS.bit_length() - 1
_LOW_BITS = MOST_DOCUMENTS - 1


class NewCells(NamedTuple):
    """The cells of c buckets that didn't exist: each is one document's key in a column.

    keys: the keys of the buckets, sorted by column in the order of the batch, then ascending.
    documents: int64[c], the number of the first document in each bucket.
    """

    keys: BucketKeys
    documents: NDArray[np.int64]


@dataclass(slots=True)
class Decision:
    """The result of judging a batch: its matches, and the changes to the index.

    matches: the matches of each document that has any, best first, by row of the batch.
    now: the latest time of a document so far, in ms.
    cells: the new buckets.
    changed: the keys of the buckets whose content isn't one new cell. They replace earlier ones.
    buckets: the content of each changed bucket, by its place in ``changed``.
    records: the records of the documents that a bucket or a verdict now names, or whose id is
        remembered, in the order of their numbers, which follow those in the index.
    renewals: all renewals of each document that has a new one, by number.
    verdicts: the verdicts of new documents that have matches, by number, if they are kept.
    columns: the columns of the batch.
    forgotten: the numbers of the documents whose record goes, ascending.
    candidates: how many comparisons with candidates were made.
    absorbed: how many cells were not inserted because an entry stands for them.
    divided: how many buckets were full, and have finer ones from now on.
    dropped: how many entries were removed from the finest buckets, which were full.
    late: how many documents were not inserted because they are older than the window.
    repeated: how many documents were ignored because they were sent again.
    """

    matches: dict[int, list[Match]]
    now: int
    cells: NewCells
    changed: BucketKeys
    buckets: Buckets
    records: list[bytes]
    renewals: dict[int, Renewals] = field(default_factory=dict)
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    columns: Sequence[int] = ()
    forgotten: list[int] = field(default_factory=list)
    candidates: int = 0
    absorbed: int = 0
    divided: int = 0
    dropped: int = 0
    late: int = 0
    repeated: int = 0

    @classmethod
    def nothing(cls, now: int = 0) -> Decision:
        """Return the decision about no documents."""
        cells = NewCells(BucketKeys.none(), np.empty(0, np.int64))
        return cls({}, now, cells, BucketKeys.none(), Buckets.of({}), [])


def decide(reader: BucketReader, batch: DocumentBatch, rules: BucketRules) -> Decision:
    """Judge a batch of documents in order, as if each came alone; write nothing.

    A document whose id is forgotten is as if it had never been inserted, from there on. The rules
    say what a document is whose id the index already has; see `lsh.index.same_id`.

    A cell is a document's key in a column. Cells whose bucket is new, and that no other
    document of the batch shares, are inserted all at once: on a feed of mostly new
    documents, these are nearly all cells.

    Raises RecordMissing if a bucket names a document that has no record.
    """
    if rules.same_id == "replace":
        batch = replacing(reader, batch)
    nows = np.maximum.accumulate(np.maximum(batch.times, reader.now))
    if rules.same_id != "ignore":
        return _judged(reader, batch, rules, nows)
    repeats = Repeats.of(reader, batch, nows, rules)
    decision = _judged(reader, repeats.others(), rules, nows[repeats.rows])
    decision.now = int(nows.max(initial=reader.now))
    decision.matches = repeats.matches(reader, decision.matches)
    decision.repeated = len(repeats.firsts)
    return decision


def _judged(
    reader: BucketReader, batch: DocumentBatch, rules: BucketRules, nows: NDArray[np.int64]
) -> Decision:
    """Judge documents of which none was sent again.

    nows: int64[n], the latest time of a document so far, at each of the batch, in ms.
    """
    if not len(batch.ids):
        nothing = Decision.nothing(reader.now)
        found = reader.identified({one.id for one in batch.forgotten})
        nothing.forgotten = sorted(number for numbers in found.values() for number in numbers)
        return nothing
    cells = cells_of(batch.columns, batch.keys)
    return _Judging(reader, batch, rules, cells, nows).decision()


class _Judging:
    """The judging of one batch.

    Until it is known which documents are inserted, the number of each is that of its row after
    ``first``. ``contested`` are the buckets, by run of the cells, that more than one document
    concerns, and the finer ones of these; see `Chains`.
    """

    def __init__(
        self,
        reader: BucketReader,
        batch: DocumentBatch,
        rules: BucketRules,
        cells: Cells,
        nows: NDArray[np.int64],
    ) -> None:
        self._reader = reader
        self._batch = batch
        self._rules = rules
        self._cells = cells
        self._first = reader.inserted
        self._nows = nows
        found = read_buckets(reader, batch.columns, cells, batch.sketches, rules)
        self._new = np.ones(len(cells.sizes), bool)
        self._new[found.places] = False
        contested = np.flatnonzero(~self._new | (cells.sizes > 1))
        self._left = Apart(*cells.pairs(contested))
        self._buckets = GrowingBuckets(found, len(cells.sizes))
        self._grown = np.zeros(len(cells.sizes), bool)
        # The documents of the batch itself may fill a bucket.
        room = rules.capacity + 1 - cells.sizes[contested]
        crowded = contested[self._buckets.crowded(contested, room)]
        self._crowded = np.zeros(len(cells.sizes), bool)
        self._crowded[crowded] = True
        self._known = Known()
        self._known.learn(reader, set(found.entries.tolist()), rules.window_ms)
        contents = self._buckets.lists(crowded)
        self._chains = Chains(reader, cells, batch.sketches, contents, rules, self._known)
        self._contested = self._chains.contents
        self._changed: set[int] = set()
        self._renewed: dict[int, dict[int, int]] = {}
        self._to_forget = deque(batch.forgotten)
        ids = {one.id for one in batch.forgotten}
        self._stored = reader.identified(ids) if ids else {}
        self._rows_by_id: dict[bytes, deque[int]] = {ident: deque() for ident in ids}
        if ids:
            self._find_rows()
        self._made = Decision.nothing(int(nows[-1]))
        self._made.columns = batch.columns
        self._inserted = np.zeros(len(batch.ids), bool)

    def decision(self) -> Decision:
        """Judge the batch."""
        late = self._late()
        self._made.late = int(np.count_nonzero(late))
        cells, rows = self._cells, self._cells.rows[self._cells.starts]
        kept = self._new & (cells.sizes == 1) & ~late[rows]
        inserted = self._inserted
        inserted[rows[kept]] = True
        any_order = ~late if not self._batch.forgotten else np.zeros_like(late)
        for apart, left in rounds(cells, self._left, any_order):
            self._judge(apart)
            self._left = left
        self._judge_in_order(late)
        self._made.matches = dict(sorted(self._made.matches.items()))
        gone = self._rows_forgotten()
        if gone:
            kept &= ~np.isin(rows, gone)
        recorded = ~late if self._rules.same_id == "ignore" else inserted.copy()
        recorded[gone] = False
        self._number(recorded, kept, rows)
        self._remember(recorded, inserted)
        return self._made

    def _judge_in_order(self, late: NDArray[np.bool_]) -> None:
        """Judge the documents that are left, one by one.

        late: bool[n], those that are not inserted.
        """
        runs = without_repeats(self._left.runs)
        runs = runs[~self._crowded[runs]]
        self._contested |= self._buckets.lists(runs)
        self._changed.update(runs[self._grown[runs]].tolist())
        self._crowded[runs], self._grown[runs] = True, False
        for row, its_runs in by_row(*self._left):
            self._forget(row)
            if self._one(row, its_runs, late=bool(late[row])):
                self._inserted[row] = True
        self._forget(len(late))

    def _find_rows(self) -> None:
        """Find the rows of the batch's documents that have an id that is forgotten."""
        for row, ident in enumerate(self._batch.ids):
            if ident in self._rows_by_id:
                self._rows_by_id[ident].append(row)

    def _judge(self, apart: Apart) -> None:
        """Judge documents that don't depend on each other."""
        made, rules, window = self._made, self._rules, self._rules.window_ms
        chains = self._chains_of(apart)
        verdicts = judged(
            self._batch,
            apart,
            self._cells.keys.columns[apart.runs],
            self._met(apart, chains),
            known=self._known,
            rules=rules,
            oldest=None if window is None else self._nows - window,
        )
        made.matches |= verdicts.matches
        made.candidates += verdicts.candidates
        single = ~self._crowded[apart.runs]
        made.absorbed += int(np.count_nonzero(verdicts.absorbed & single))
        inserted = ~verdicts.absorbed
        changed = inserted | verdicts.renewed | self._grown[apart.runs]
        self._grow(apart, verdicts, single & changed)
        renewed = verdicts.renewed & single
        entries, runs = verdicts.standing[renewed].tolist(), apart.runs[renewed]
        columns = self._cells.keys.columns[runs].tolist()
        times = self._batch.times[apart.rows[renewed]].tolist()
        for entry, run, column, time in zip(entries, runs.tolist(), columns, times, strict=True):
            self._renew(entry, run, column, time)
        self._insert_into_chains(apart, chains, verdicts, inserted)
        self._inserted[apart.rows[inserted]] = True
        shared = self._cells.sizes[apart.runs] > 1
        for row in without_repeats(apart.rows[inserted & shared]).tolist():
            self._add(row)

    def _chains_of(self, apart: Apart) -> dict[int, list[int]]:
        """Return the chains of the cells whose buckets are crowded, by place of the cell."""
        window = self._rules.window_ms
        chains = {}
        for cell in np.flatnonzero(self._crowded[apart.runs]).tolist():
            row = int(apart.rows[cell])
            oldest = None if window is None else int(self._nows[row]) - window
            chains[cell] = self._chains.of(row, int(apart.runs[cell]), oldest)
        return chains

    def _met(self, apart: Apart, chains: dict[int, list[int]]) -> Met:
        """Return the entries that documents meet."""
        if not chains:
            return Met(self._buckets.sizes[apart.runs], self._buckets.entries(apart.runs))
        listed = [
            [entry for number in chain for entry in self._contested[number] if entry != BEYOND]
            for chain in chains.values()
        ]
        crowded = np.fromiter(chains, np.int64)
        single = np.ones(len(apart.runs), bool)
        single[crowded] = False
        sizes = self._buckets.sizes[apart.runs]
        sizes[crowded] = [len(entries) for entries in listed]
        entries = np.empty(sizes.sum(), np.int64)
        of_single = np.repeat(single, sizes)
        entries[of_single] = self._buckets.entries(apart.runs[single])
        entries[~of_single] = [*chain.from_iterable(listed)]
        return Met(sizes, entries)

    def _grow(self, apart: Apart, verdicts: Verdicts, cells: NDArray[np.bool_]) -> None:
        """Insert documents into the buckets of some cells, unless they were absorbed there.

        What has expired leaves these buckets. cells: bool[c].
        """
        inserted = ~verdicts.absorbed[cells]
        sizes = verdicts.met.sizes[cells] + inserted
        entries = np.empty(sizes.sum(), np.int64)
        last = np.zeros(len(entries), bool)
        last[(np.cumsum(sizes) - 1)[inserted]] = True
        entries[last] = self._first + apart.rows[cells][inserted]
        entries[~last] = verdicts.met.entries[np.repeat(cells, verdicts.met.sizes)]
        runs = apart.runs[cells]
        self._buckets.put(runs, sizes, entries)
        self._grown[runs[inserted]] = True

    def _insert_into_chains(
        self,
        apart: Apart,
        chains: dict[int, list[int]],
        verdicts: Verdicts,
        inserted: NDArray[np.bool_],
    ) -> None:
        """Insert documents into one bucket of each chain, unless they were absorbed there."""
        sizes = verdicts.met.sizes
        starts = np.cumsum(sizes) - sizes
        for cell, its_chain in chains.items():
            here = slice(int(starts[cell]), int(starts[cell] + sizes[cell]))
            entries, alike = verdicts.met.entries[here].tolist(), verdicts.alike[here].tolist()
            row = int(apart.rows[cell])
            number, time = self._first + row, int(self._batch.times[row])
            similar = dict(zip(entries, alike, strict=True))
            inserted[cell] = self._insert(its_chain, number, similar, time)

    def _add(self, row: int) -> None:
        """Add a document that a bucket names to what is known."""
        batch = self._batch
        record = Record(
            int(batch.sequences[row]),
            int(batch.times[row]),
            int(batch.shingles[row]),
            batch.sketches[row].tobytes(),
            batch.ids[row],
        )
        self._known.add(self._first + row, record)

    def _renew(self, entry: int, place: int, column: int, time: int) -> None:
        """Renew an entry of a bucket in a column to a time, in ms."""
        self._known.renewals.setdefault(entry, {})[column] = time
        self._renewed.setdefault(entry, {})[place] = column

    def _forget(self, row: int) -> None:
        """Forget the ids that are forgotten before a row.

        They leave a bucket when it is next looked at, or written.
        """
        while self._to_forget and self._to_forget[0].row <= row:
            before, ident = self._to_forget.popleft()
            stored, rows = self._stored.pop(ident, []), self._rows_by_id[ident]
            self._made.forgotten += stored
            self._known.forgotten.update(stored)
            while rows and rows[0] < before:
                self._known.forgotten.add(self._first + rows.popleft())

    def _rows_forgotten(self) -> list[int]:
        """Return the rows of the batch's documents that were forgotten."""
        self._made.forgotten.sort()
        return [number - self._first for number in self._known.forgotten if number >= self._first]

    def _late(self) -> NDArray[np.bool_]:
        """Return which documents are older than the window when they come: bool[n]."""
        if self._rules.window_ms is None:
            return np.zeros(len(self._batch.ids), bool)
        late: NDArray[np.bool_] = self._batch.times < self._nows - self._rules.window_ms
        return late

    def _one(self, row: int, runs: list[int], *, late: bool) -> bool:
        """Match a document with contested cells, then update the buckets of these.

        Returns whether it was inserted into one of them.
        """
        window = self._rules.window_ms
        oldest = None if window is None else int(self._nows[row]) - window
        chains = [self._chains.of(row, run, oldest) for run in runs]
        buckets = {number: self._contested[number] for chain in chains for number in chain}
        sketch = self._batch.sketches[row]
        similar = self._known.similar(sketch, buckets.values())
        self._made.candidates += len(similar)
        size = int(self._batch.shingles[row])
        containing = self._known.containing(size, similar, self._rules)
        best = best_matches(similar, containing, self._known, self._rules)
        if best:
            self._made.matches[row] = best
        if late:
            return False
        number, time = self._first + row, int(self._batch.times[row])
        inserted = [self._insert(chain, number, similar, time) for chain in chains]
        if not any(inserted):
            return False
        self._add(row)
        return True

    def _insert(self, chain: list[int], number: int, similar: dict[int, float], time: int) -> bool:
        """Insert a document into one of its buckets for a key; return False if that isn't needed.

        Then the entry that stands for it is renewed to its time.
        """
        place, entry, dropped = update(chain, self._contested, number, similar, self._rules)
        self._made.dropped += dropped
        before = chain[: chain.index(place)]
        if entry is None:
            self._changed.add(place)
            self._go_beyond(before)
            return True
        self._made.absorbed += 1
        column = self._chains.column(place)
        if self._rules.window_ms is not None and time > self._known.time(entry, column):
            self._renew(entry, place, column, time)
            self._go_beyond(before)
        return False

    def _go_beyond(self, before: list[int]) -> None:
        """Note in the buckets before one that has changed that they have finer ones.

        With a window, the note is written anew, since what is older is given back.
        """
        for number in before:
            bucket = self._contested[number]
            if bucket[-1:] != [BEYOND]:
                bucket.append(BEYOND)
                self._changed.add(number)
                self._made.divided += 1
            elif self._rules.window_ms is not None:
                self._changed.add(number)

    def _number(
        self, recorded: NDArray[np.bool_], kept: NDArray[np.bool_], rows: NDArray[np.int64]
    ) -> None:
        """Number the documents that get a record, and write down all changes.

        recorded: bool[n]. kept: bool[r], the runs of cells that are new buckets of one document.
        rows: int64[r], the first document of each run.
        """
        first, made = self._first, self._made
        numbers = first + np.cumsum(recorded) - recorded
        made.records = self._records(np.flatnonzero(recorded), kept, rows)
        moves = self._renewals(numbers.tolist())
        changed = self._all_changed()
        is_new = np.append(self._new, False)[np.minimum(changed.places, len(kept))]
        alone = is_new & (changed.sizes == 1)
        alone[alone] = changed.entries[changed.starts[alone]] != BEYOND
        holders, runs = rows.copy(), changed.places[alone]
        kept[runs] = True
        holders[runs] = changed.entries[changed.starts[alone]] - first
        made.cells = NewCells(self._cells.keys.take(kept), numbers[holders[kept]])
        changed = changed.take(np.flatnonzero(~alone))
        made.changed = self._chains.keys(changed.places)
        own = changed.entries >= first
        changed.entries[own] = numbers[changed.entries[own] - first]
        if moves:
            _move(changed, moves)
        made.buckets = Buckets(np.arange(len(changed)), changed.sizes, changed.entries)

    def _all_changed(self) -> Buckets:
        """Return the buckets that have changed, by number, without what was forgotten meanwhile."""
        grown = np.flatnonzero(self._grown)
        changed = {number: self._left_in(number) for number in sorted(self._changed)}
        return Buckets.joined([self._buckets.of(grown), Buckets.of(changed)])

    def _remember(self, recorded: NDArray[np.bool_], inserted: NDArray[np.bool_]) -> None:
        """Write down what is needed to answer for documents that are sent again.

        recorded, inserted: bool[n], the documents that have a record, and that a bucket names.
        """
        if self._rules.same_id != "ignore":
            return
        made = self._made
        places: NDArray[np.int64] = np.cumsum(recorded) - recorded
        for place in places[recorded & ~inserted].tolist():
            made.records[place] = without_sketch(made.records[place])
        matches = [(row, some) for row, some in made.matches.items() if recorded[row]]
        if matches:
            final = (self._first + places).tolist()
            naming = Naming(self._reader, self._known, final, made.records)
            made.verdicts = naming.verdicts(matches)

    def _left_in(self, run: int) -> Bucket:
        """Return a bucket without what was forgotten since it was last looked at."""
        bucket, gone = self._contested[run], self._known.forgotten
        return [number for number in bucket if number not in gone] if gone else bucket

    def _renewals(self, final: list[int]) -> dict[tuple[int, int], int]:
        """Write down the renewals.

        A document that the index wants to move gets another number in the buckets where it was
        renewed. Returns these numbers by run and former number.

        final: the numbers of the batch's documents.
        """
        first, made = self._first, self._made
        moves: dict[tuple[int, int], int] = {}
        buckets = self._buckets_renewed()
        for number, runs in sorted(self._renewed.items()):
            if number in self._known.forgotten:
                continue
            renewals = self._known.renewals[number]
            if number >= first:
                made.renewals[final[number - first]] = renewals
            elif number >= self._reader.moved_below:
                made.renewals[number] = renewals
            else:
                held = [run for run in runs if number in buckets[run]]
                moved = first + len(made.records)
                moves |= {(run, number): moved for run in held}
                if held:
                    made.records.append(with_others(self._known.packed[number]))
                    made.renewals[moved] = {runs[run]: renewals[runs[run]] for run in held}
        for run, _ in moves:
            if run in self._contested:
                self._changed.add(run)
            else:
                self._grown[run] = True
        return moves

    def _buckets_renewed(self) -> dict[int, Bucket]:
        """Return the buckets in which documents were renewed that the index may want to move."""
        below = self._reader.moved_below
        numbers = {n for old, runs in self._renewed.items() if old < below for n in runs}
        single = np.array(sorted(numbers - self._contested.keys()), np.int64)
        return self._contested | self._buckets.lists(single)

    def _records(
        self, recorded: NDArray[np.int64], kept: NDArray[np.bool_], rows: NDArray[np.int64]
    ) -> list[bytes]:
        """Return the records of documents of the batch: int64[k], their rows.

        kept, rows: as of `_number`.
        """
        batch, new = self._batch, None
        if self._rules.rows:
            places = np.zeros(1 << 8, np.int64)
            places[np.asarray(batch.columns)] = np.arange(len(batch.columns))
            new = np.zeros((len(batch.ids), len(batch.columns)), bool)
            new[rows[kept], places[self._cells.keys.columns[kept]]] = True
            new = new[recorded]
        return pack_records(
            batch.sequences[recorded],
            batch.times[recorded],
            batch.shingles[recorded],
            batch.sketches[recorded],
            [batch.ids[row] for row in recorded.tolist()],
            new=new,
        )


def _move(buckets: Buckets, moves: dict[tuple[int, int], int]) -> None:
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
