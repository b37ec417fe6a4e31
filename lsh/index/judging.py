"""The judging of one batch: at once what doesn't depend on each other, then the rest in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.exact import without_repeats
from lsh.index.apart import Apart, judged, rounds
from lsh.index.cells import by_row
from lsh.index.changes import Changes
from lsh.index.decision import Decision
from lsh.index.forgetting import Forgetting
from lsh.index.growing import GrowingBuckets
from lsh.index.implied import read_buckets
from lsh.index.layout import BEYOND, Record
from lsh.index.match import Known, best_matches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.apart import Verdicts
    from lsh.index.batch import DocumentBatch
    from lsh.index.buckets import BucketReader
    from lsh.index.cells import Cells
    from lsh.index.rules import BucketRules

__all__ = ["Judging"]


class Judging:
    """The judging of one batch of n > 0 documents, of which none was sent again.

    Until it is known which documents are inserted, the number of each is that of its row after
    those in the index. A cell is contested if its bucket exists, or several documents share it. All
    other cells are new buckets, whatever is decided.
    """

    def __init__(
        self,
        reader: BucketReader,
        batch: DocumentBatch,
        rules: BucketRules,
        cells: Cells,
        nows: NDArray[np.int64],
    ) -> None:
        """Read what the batch meets.

        nows: int64[n], the latest time of a document so far, at each of the batch, in ms.

        Raises RecordMissing if a bucket names a document that has no record.
        """
        self._reader = reader
        self._batch = batch
        self._rules = rules
        self._cells = cells
        self._first = reader.inserted
        window = rules.window_ms
        self._oldest = None if window is None else nows - window
        found = read_buckets(reader, batch.columns, cells, batch.sketches, rules)
        self._new = np.ones(len(cells.sizes), bool)
        self._new[found.places] = False
        self._known = Known()
        self._known.learn(reader, set(without_repeats(found.entries).tolist()), window)
        self._buckets = GrowingBuckets(reader, cells, batch.sketches, found, self._known, rules)
        self._forgetting = Forgetting(reader, batch, self._known)
        self._renewed: dict[int, dict[int, int]] = {}
        self._inserted = np.zeros(len(batch.ids), bool)
        self._made = Decision.nothing(int(nows[-1]))
        self._made.columns = batch.columns

    def decision(self) -> Decision:
        """Judge the batch."""
        made, cells = self._made, self._cells
        late = self._late()
        made.late = int(np.count_nonzero(late))
        rows = cells.rows[cells.starts]
        kept = self._new & (cells.sizes == 1) & ~late[rows]
        self._inserted[rows[kept]] = True
        left = Apart(*cells.pairs(np.flatnonzero(~self._new | (cells.sizes > 1))))
        any_order = ~late if not self._batch.forgotten else np.zeros_like(late)
        for apart, rest in rounds(cells, left, any_order):
            self._judge(apart)
            left = rest
        self._judge_in_order(left, late)
        made.matches = dict(sorted(made.matches.items()))
        made.divided, made.dropped = self._buckets.divided, self._buckets.dropped
        made.forgotten = sorted(self._forgetting.stored)
        self._write(kept, late)
        return made

    def _late(self) -> NDArray[np.bool_]:
        """Return which documents are older than the window when they come: bool[n]."""
        if self._oldest is None:
            return np.zeros(len(self._batch.ids), bool)
        late: NDArray[np.bool_] = self._batch.times < self._oldest
        return late

    def _oldest_at(self, row: int) -> int | None:
        """Return the least time of an entry when a document comes, in ms; None: any."""
        return None if self._oldest is None else int(self._oldest[row])

    def _judge(self, apart: Apart) -> None:
        """Judge documents that don't depend on each other."""
        listed = self._buckets.listed[apart.runs]
        chains = {
            cell: self._buckets.chain(row, run, self._oldest_at(row))
            for cell, row, run in zip(
                np.flatnonzero(listed).tolist(),
                apart.rows[listed].tolist(),
                apart.runs[listed].tolist(),
                strict=True,
            )
        }
        verdicts = judged(
            self._batch,
            apart,
            self._cells.keys.columns[apart.runs],
            self._buckets.met(apart.runs, chains),
            known=self._known,
            rules=self._rules,
            oldest=self._oldest,
        )
        self._made.matches |= verdicts.matches
        self._made.candidates += verdicts.candidates
        inserted = ~verdicts.absorbed
        self._update(apart, verdicts, ~listed)
        for (cell, chain), similar in zip(chains.items(), verdicts.similar(chains), strict=True):
            inserted[cell] = self._insert(chain, int(apart.rows[cell]), similar)
        self._inserted[apart.rows[inserted]] = True
        shared = self._cells.sizes[apart.runs] > 1
        for row in without_repeats(apart.rows[inserted & shared]).tolist():
            self._add(row)

    def _update(self, apart: Apart, verdicts: Verdicts, single: NDArray[np.bool_]) -> None:
        """Update the buckets of cells that are in arrays: bool[c], these cells."""
        absorbed, renewed = verdicts.absorbed & single, verdicts.renewed & single
        self._made.absorbed += int(np.count_nonzero(absorbed))
        new = np.where(verdicts.absorbed, BEYOND, self._first + apart.rows)
        # What has expired leaves a bucket that has changed.
        put = single & (~absorbed | renewed | self._buckets.changed_in(apart.runs))
        met = verdicts.met.take(np.repeat(put, verdicts.met.sizes))
        self._buckets.put(apart.runs[put], met._replace(sizes=met.sizes[put]), new[put])
        renewals = zip(
            verdicts.standing[renewed].tolist(),
            apart.runs[renewed].tolist(),
            self._cells.keys.columns[apart.runs[renewed]].tolist(),
            self._batch.times[apart.rows[renewed]].tolist(),
            strict=True,
        )
        for entry, run, column, time in renewals:
            self._renew(entry, run, column, time)

    def _judge_in_order(self, left: Apart, late: NDArray[np.bool_]) -> None:
        """Judge documents one by one.

        late: bool[n], those that are not inserted.
        """
        self._buckets.list_all(without_repeats(left.runs))
        for row, runs in by_row(*left):
            self._forgetting.before(row)
            self._inserted[row] |= self._one(row, runs, late=bool(late[row]))
        self._forgetting.before(len(late))

    def _one(self, row: int, runs: list[int], *, late: bool) -> bool:
        """Match a document with contested cells, then update the buckets of these.

        Returns whether it was inserted into one of them.
        """
        chains = [self._buckets.chain(row, run, self._oldest_at(row)) for run in runs]
        lists = [self._buckets.lists[number] for chain in chains for number in chain]
        similar = self._known.similar(self._batch.sketches[row], lists)
        self._made.candidates += len(similar)
        size = int(self._batch.shingles[row])
        containing = self._known.containing(size, similar, self._rules)
        best = best_matches(similar, containing, self._known, self._rules)
        if best:
            self._made.matches[row] = best
        inserted = [] if late else [self._insert(chain, row, similar) for chain in chains]
        if any(inserted):
            self._add(row)
        return any(inserted)

    def _insert(self, chain: list[int], row: int, similar: dict[int, float]) -> bool:
        """Insert a document into one of its buckets for a key; return False if that isn't needed.

        Then the entry that stands for it is renewed to its time.
        """
        place, entry, _ = self._buckets.insert(chain, self._first + row, similar)
        if entry is None:
            return True
        self._made.absorbed += 1
        column, time = self._buckets.column(place), int(self._batch.times[row])
        if self._rules.window_ms is not None and time > self._known.time(entry, column):
            self._renew(entry, place, column, time)
            self._buckets.go_beyond(chain, place)
        return False

    def _renew(self, entry: int, place: int, column: int, time: int) -> None:
        """Renew an entry of a bucket in a column to a time, in ms."""
        self._known.renewals.setdefault(entry, {})[column] = time
        self._renewed.setdefault(entry, {})[place] = column

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

    def _write(self, kept: NDArray[np.bool_], late: NDArray[np.bool_]) -> None:
        """Write down the changes.

        kept: bool[r], the runs that are new buckets of one document. late: bool[n].
        """
        cells, gone = self._cells, self._forgetting.rows()
        if gone:
            kept &= ~np.isin(cells.rows[cells.starts], gone)
        recorded = ~late if self._rules.same_id == "ignore" else self._inserted.copy()
        recorded[gone] = False
        changes = Changes(self._reader, self._batch, self._rules, cells, self._known, recorded)
        changes.write(self._made, self._buckets, self._renewed, self._new, kept)
        if self._rules.same_id == "ignore":
            changes.remember(self._made, self._inserted)
