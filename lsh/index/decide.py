"""Decides verdicts: matches a batch against the buckets and, in order, against itself."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.index.apart import divided, judged
from lsh.index.buckets import spread
from lsh.index.cells import cells_of
from lsh.index.chains import Chains
from lsh.index.implied import read_buckets
from lsh.index.layout import (
    BEYOND,
    BucketKeys,
    Record,
    pack_records,
    with_others,
    without_sketch,
)
from lsh.index.match import best_matches
from lsh.index.naming import Naming
from lsh.index.same_id import Repeats, replacing
from lsh.index.update import update

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lsh.index.batch import DocumentBatch, Match
    from lsh.index.buckets import BucketReader
    from lsh.index.cells import Cells
    from lsh.index.layout import Bucket, Renewals
    from lsh.index.rules import BucketRules
    from lsh.index.verdicts import Verdict

__all__ = ["Decision", "NewCells", "decide"]


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
    buckets: the content of each changed bucket.
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
    buckets: list[Bucket]
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
        return cls({}, now, cells, BucketKeys.none(), [], [])


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
        any_order = ~self._late() if not batch.forgotten else np.zeros(len(batch.ids), bool)
        apart, self._runs = divided(cells, found, contested, rules.capacity, any_order)
        buckets: dict[int, Bucket] = {run: [] for run in self._runs.tolist()}
        buckets |= found.at(np.flatnonzero(np.isin(found.places, self._runs)))
        self._chains = Chains(reader, cells, batch.sketches, buckets, rules)
        self._contested, self._known = self._chains.contents, self._chains.known
        self._apart, self._found = apart, found
        self._changed: set[int] = set()
        self._renewed: dict[int, dict[int, int]] = {}
        self._left = deque(batch.forgotten)
        ids = {one.id for one in batch.forgotten}
        self._stored = reader.identified(ids) if ids else {}
        self._rows_by_id: dict[bytes, deque[int]] = {ident: deque() for ident in ids}
        if ids:
            self._find_rows()
        self._made = Decision.nothing(int(nows[-1]))
        self._made.columns = batch.columns

    def decision(self) -> Decision:
        """Judge the batch."""
        late = self._late()
        self._made.late = int(np.count_nonzero(late))
        cells, rows = self._cells, self._cells.rows[self._cells.starts]
        kept = self._new & (cells.sizes == 1) & ~late[rows]
        inserted = np.zeros(len(self._batch.ids), bool)
        inserted[rows[kept]] = True
        inserted[self._judge_apart()] = True
        for row, runs in cells.by_row(self._runs):
            self._forget(row)
            if self._one(row, runs, late=bool(late[row])):
                inserted[row] = True
        self._forget(len(inserted))
        self._made.matches = dict(sorted(self._made.matches.items()))
        gone = self._rows_forgotten()
        kept &= ~np.isin(rows, gone)
        recorded = ~late if self._rules.same_id == "ignore" else inserted.copy()
        recorded[gone] = False
        self._number(recorded, kept, rows)
        self._remember(recorded, inserted)
        return self._made

    def _find_rows(self) -> None:
        """Find the rows of the batch's documents that have an id that is forgotten."""
        for row, ident in enumerate(self._batch.ids):
            if ident in self._rows_by_id:
                self._rows_by_id[ident].append(row)

    def _judge_apart(self) -> NDArray[np.int64]:
        """Judge the documents that meet no other one; return the rows of the inserted ones."""
        rules, known, made = self._rules, self._known, self._made
        at = np.searchsorted(self._found.places, self._apart.runs)
        taken = spread(self._found.starts[at], self._found.sizes[at])
        named = set(self._found.entries[taken].tolist())
        known.learn(self._reader, named, rules.window_ms)
        verdicts = judged(
            self._batch,
            self._apart,
            self._cells,
            self._found,
            known=known,
            rules=rules,
            first=self._first,
            oldest=None if rules.window_ms is None else self._nows - rules.window_ms,
        )
        self._contested |= verdicts.buckets
        self._changed.update(verdicts.changed)
        for run, entry, row in verdicts.renewed:
            self._renew(entry, run, int(self._batch.times[row]))
        made.matches |= verdicts.matches
        made.candidates += verdicts.candidates
        made.absorbed += verdicts.absorbed
        return verdicts.inserted

    def _renew(self, entry: int, place: int, time: int) -> None:
        """Renew an entry of a bucket to a time, in ms."""
        column = self._chains.column(place)
        self._known.renewals.setdefault(entry, {})[column] = time
        self._renewed.setdefault(entry, {})[place] = column

    def _forget(self, row: int) -> None:
        """Forget the ids that are forgotten before a row.

        They leave a bucket when it is next looked at, or written.
        """
        while self._left and self._left[0].row <= row:
            before, ident = self._left.popleft()
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
        inserted = [self._inserted(chain, number, similar, time) for chain in chains]
        if not any(inserted):
            return False
        sequence = int(self._batch.sequences[row])
        record = Record(sequence, time, size, sketch.tobytes(), self._batch.ids[row])
        self._known.add(number, record)
        return True

    def _inserted(
        self, chain: list[int], number: int, similar: dict[int, float], time: int
    ) -> bool:
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
            self._renew(entry, place, time)
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
        final = numbers.tolist()
        moves = self._renewals(final)
        holders = rows.copy()
        changed = []
        for run in sorted(self._changed):
            bucket = self._contested[run] = self._left_in(run)
            if run < len(kept) and self._new[run] and len(bucket) == 1 and bucket != [BEYOND]:
                kept[run] = True
                holders[run] = bucket[0] - first
            elif bucket:  # What is stored of one that is empty has expired.
                changed.append(run)
        made.cells = NewCells(self._cells.keys.take(kept), numbers[holders[kept]])
        made.changed = self._chains.keys(changed)
        made.buckets = self._final([self._contested[run] for run in changed], numbers)
        for place, run in enumerate(changed if moves else ()):
            bucket = made.buckets[place]
            bucket[:] = [moves.get((run, number), number) for number in bucket]

    def _final(self, buckets: list[Bucket], numbers: NDArray[np.int64]) -> list[Bucket]:
        """Return buckets in which the batch's documents have their numbers.

        numbers: int64[n], those of the batch's documents.
        """
        entries = np.fromiter(chain.from_iterable(buckets), np.int64)
        own = entries >= self._first
        entries[own] = numbers[entries[own] - self._first]
        ends = accumulate(map(len, buckets), initial=0)
        listed = entries.tolist()
        return [listed[start:end] for start, end in pairwise(ends)]

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
        for number, runs in sorted(self._renewed.items()):
            if number in self._known.forgotten:
                continue
            renewals = self._known.renewals[number]
            if number >= first:
                made.renewals[final[number - first]] = renewals
            elif number >= self._reader.moved_below:
                made.renewals[number] = renewals
            else:
                held = [run for run in runs if number in self._contested[run]]
                moved = first + len(made.records)
                moves |= {(run, number): moved for run in held}
                if held:
                    made.records.append(with_others(self._known.packed[number]))
                    made.renewals[moved] = {runs[run]: renewals[runs[run]] for run in held}
        self._changed.update(run for run, _ in moves)
        return moves

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
