"""The judging of one batch: each document as if it came alone, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.index.changes import Changes
from lsh.index.decision import Decision
from lsh.index.forgetting import forgotten_rows
from lsh.index.growing import GrowingBuckets
from lsh.index.implied import read_buckets
from lsh.index.known import Known
from lsh.index.matched import matched, once
from lsh.index.renewed import COLUMN_BITS, RenewedEntries
from lsh.index.rounds import Rounds, disturbed
from lsh.index.walk import Pairs, Walk
from lsh.ordered import first_of_each

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.batch import DocumentBatch
    from lsh.index.buckets import BucketReader
    from lsh.index.cells import Cells
    from lsh.index.clock import Dated
    from lsh.index.rules import BucketRules
    from lsh.index.walk import Ends

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
        dates: Dated,
    ) -> None:
        """Read what the batch meets; its times are those of ``dates``.

        Raises RecordMissing if a bucket names a document that has no record.
        """
        self._reader = reader
        self._batch = batch
        self._rules = rules
        self._cells = cells
        self._oldest = dates.oldest
        self._later = dates.clock.later
        self._made = Decision.nothing()
        self._made.dates = dates
        self._made.columns = batch.columns
        self._known = Known(reader, batch.sketches.shape[1], dates.clock, batch)
        self._made.forgotten = forgotten_rows(reader, batch, self._known)
        found = read_buckets(reader, batch.columns, cells, self._known, rules)
        self._new = np.ones(len(cells.sizes), np.bool_)
        self._new[found.places] = False
        self._buckets = GrowingBuckets(reader, cells, found, self._known)
        self._inserted = np.zeros(len(batch.ids), np.bool_)
        self._renewed: list[RenewedEntries] = []
        self._pairs: list[Pairs] = []

    def decision(self) -> Decision:
        """Judge the batch."""
        made, cells = self._made, self._cells
        rows = cells.rows[cells.starts]
        kept = self._new & (cells.sizes == 1)
        self._inserted[rows[kept]] = True
        self._judge(np.flatnonzero(~self._new | (cells.sizes > 1)))
        pairs = once(Pairs.joined(self._pairs), self._batch.sketches.shape[1])
        found = matched(pairs, self._batch.shingles, self._known, self._rules)
        made.candidates, made.matches = found.compared, found
        made.divided = self._buckets.divided
        self._write(kept)
        return made

    def _judge(self, contested: NDArray[np.int64]) -> None:
        """Judge the cells of runs: int64[k], ascending."""
        rounds = Rounds(self._cells, contested)
        while rounds:
            rows, runs = rounds.chosen()
            ends = Walk(
                self._buckets,
                self._known,
                self._rules,
                self._batch.sketches,
                rows,
                runs,
                self._oldest,
            ).ends()
            columns = self._cells.keys.columns[runs]
            inserted = ends.standing < 0
            renewed = self._renewing(rows, columns, ends)
            stands = rounds.judged(disturbed(ends, inserted, renewed))
            self._settle(rows, ends, inserted & stands, stands & ~inserted)
            self._pairs.append(_settled(ends.pairs, rows, stands))
            self._renew(rows, columns, ends, renewed & stands)
            self._divide(ends, (inserted | renewed) & stands)

    def _renewing(
        self, rows: NDArray[np.int64], columns: NDArray[np.uint8], ends: Ends
    ) -> NDArray[np.bool_]:
        """Return in which cells the document is later than the entry that stands for it."""
        renewing = np.zeros(len(rows), np.bool_)
        if self._rules.window_ms is not None:
            stands = np.flatnonzero(ends.standing >= 0)
            times = self._known.renewed_times(ends.standing[stands], columns[stands])
            renewing[stands] = self._later(self._batch.times[rows[stands]], times) != times
        return renewing

    def _settle(
        self,
        rows: NDArray[np.int64],
        ends: Ends,
        inserted: NDArray[np.bool_],
        spared: NDArray[np.bool_],
    ) -> None:
        """Insert documents into the buckets in which some cells end: bool[c].

        spared: bool[c], the cells in which another document stands for it.
        """
        made, last = self._made, ends.last
        self._inserted[rows[inserted]] = True
        made.absorbed += int(np.count_nonzero(spared))
        made.covered += int(np.count_nonzero(spared & ends.covered))
        dropped = inserted & ends.dropped
        made.dropped += int(np.count_nonzero(dropped))
        self._buckets.drop(last[dropped])
        for level, content in ends.contents:
            chosen = inserted[content.cells] & (ends.level[content.cells] == level)
            places = content.places[np.repeat(chosen, content.sizes)]
            into = content.cells[chosen]
            self._buckets.put(last[into], content.sizes[chosen], places, rows[into])

    def _divide(self, ends: Ends, changing: NDArray[np.bool_]) -> None:
        """Note in the buckets before those that change that they have finer ones.

        With a window, the note is written anew, since what is older is given back.
        """
        deep = np.flatnonzero(changing & (ends.level > 0))
        path = ends.path[deep]
        before = path[np.arange(path.shape[1]) < ends.level[deep][:, None]]
        self._buckets.divide(before, anew=self._rules.window_ms is not None)

    def _renew(
        self,
        rows: NDArray[np.int64],
        columns: NDArray[np.uint8],
        ends: Ends,
        renewed: NDArray[np.bool_],
    ) -> None:
        """Renew the entries that stand for documents to the times of these."""
        at = np.flatnonzero(renewed)
        if not len(at):
            return
        keys = ends.standing[at] << COLUMN_BITS | columns[at]
        order = np.argsort(keys, kind="stable")
        firsts = np.flatnonzero(first_of_each(keys[order]))
        times = self._later.reduceat(self._batch.times[rows[at]][order], firsts)
        at = at[order[firsts]]
        places, buckets, columns = ends.standing[at], ends.last[at], columns[at]
        self._known.renew(places, columns, times)
        self._renewed.append(RenewedEntries(self._known.numbers(places), buckets, columns))

    def _write(self, kept: NDArray[np.bool_]) -> None:
        """Write down the changes.

        kept: bool[r], the runs that are new buckets of one document.
        """
        cells, own = self._cells, self._known.gone_rows()
        kept &= ~own[cells.rows[cells.starts]]
        recorded = ~own if self._rules.same_id == "ignore" else self._inserted & ~own
        changes = Changes(self._reader, self._batch, self._rules, cells, self._known, recorded)
        oldest = None if self._oldest is None else int(self._oldest[-1])
        changed = (self._buckets, RenewedEntries.joined(self._renewed), oldest)
        changes.write(self._made, *changed, new=self._new, kept=kept)
        if self._rules.same_id == "ignore":
            changes.remember(self._made, self._inserted)


def _settled(pairs: Pairs, rows: NDArray[np.int64], stands: NDArray[np.bool_]) -> Pairs:
    """Return the comparisons of the cells whose verdicts stand, with the documents' rows."""
    kept = pairs.take(stands[pairs.of])
    return kept._replace(of=rows[kept.of])
