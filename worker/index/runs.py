"""The cells of a store: the open run in memory, and sorted runs on disk.

A new bucket has one document, and most keep only that one. Such a cell is no key of RocksDB, which
would cost sorting it several times over. Cells are gathered in the open run, which is written as a
sorted run when it has enough documents. Runs of a tier are merged into one of the next, a little
with every write. So each cell is written about once for every eightfold growth of the store, and a
look-up asks as many filters as there are tiers.

A bucket keeps its cell when it grows. The grown bucket is a key of its own, which stands above the
cell, and another cell marks that there is one: so a look-up asks for that key only if it exists.

With a window, documents are divided into `eras`. What is in an era is dropped at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from math import ceil
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rocksdict import Rdict, WriteBatch

from lsh.index import Decision
from lsh.index.layout import lows_of, pack_buckets
from worker.index.draft import Draft, drafted
from worker.index.identities import Identities
from worker.index.keyspace import (
    CELLS,
    FILTERS,
    GROWN,
    OPEN_RUN,
    PREVIOUS,
    RENEWALS,
    RUNS,
    VERDICTS,
    grown_key,
    number_key,
    of_run,
)
from worker.index.merge import Merge
from worker.index.open_run import OpenRun, pack_open_cells
from worker.index.reading import Standing
from worker.index.recent_buckets import Grown, RecentBuckets
from worker.index.record_pages import RecordPages
from worker.index.run_filters import Joined
from worker.index.run_layout import MARK, SortedCells, marked
from worker.index.run_list import ID_COLUMN, Merging, Run
from worker.index.run_lookup import RunLookup, read_filter
from worker.index.run_tables import RunTables

__all__ = ["Prepared", "Runs"]

_log = logging.getLogger(__name__)

_HASTE = 1.25
"""By how much a merge is faster than it must be to end before its tier has another run."""


class Prepared(NamedTuple):
    """What is in a write before anything changes for readers.

    ``ids`` are the cells of documents' ids, ``cells`` those of buckets, and ``alone`` says which of
    the changed buckets are a single cell: bool[b]. ``run`` is what the open run becomes, if it is
    full; ``last`` what it becomes with these cells, if an era ends with them. ``filters`` are those
    of the runs before.
    """

    ids: SortedCells
    cells: SortedCells
    alone: npt.NDArray[np.bool_]
    run: Draft | None
    last: Draft | None
    filters: Joined


class Runs:
    """Adds cells to a store. Methods raise what ``get`` and rocksdict raise.

    For each write, call `begin`, `prepare` and `add`. Nothing that readers use changes in
    `prepare`, which does most of the work. If the write fails, the store must be opened again.
    """

    def __init__(  # noqa: PLR0913, PLR0917 -- the parts of a store
        self,
        db: Rdict,
        tables: RunTables,
        lookup: RunLookup,
        recent: RecentBuckets,
        end: int,
        window: int | None,
    ) -> None:
        """Continue where the store is. ``end`` is the number that the next document will get.

        ``recent`` has the grown buckets that are in memory, and gets those that are written.
        ``window`` is how long entries live, in ms; None: for ever.

        Raises:
            ReadingEnded: not everything can be read.
            ValueError: something isn't as it was written.
        """
        self._tables = tables
        self._lookup = lookup
        self._recent = recent
        self._list = lookup.list
        tables.begin(self._list)
        self._end = end
        self._window = window
        self._merges = [self._merge(plan) for plan in self._list.merging]
        for merge in self._merges:
            plan = merge.plan
            read_filter(db, plan.target, self._list.shape(plan.tier + 1), merge.words)

    @property
    def merging_bytes(self) -> int:
        """Return the size in memory of the filters that are being made."""
        return sum(merge.words.nbytes for merge in self._merges)

    def begin(self, columns: Iterable[int]) -> None:
        """Set the columns of an empty store; another keeps its own."""
        if not self._list.columns and (own := sorted(columns)):
            self._lookup.begin([*own, ID_COLUMN])

    def prepare(
        self,
        batch: WriteBatch,
        decision: Decision,
        standing: Standing,
        identities: Identities,
        give_way: Callable[[], None] = lambda: None,
    ) -> Prepared | None:
        """Put into a write what can be there before readers must wait: merges, runs, new buckets.

        ``standing`` is about the buckets that the decision was made from. ``give_way`` is called
        between steps of a few ms. Returns what `add` takes; None if the store has no columns yet.

        Raises:
            ValueError: the columns aren't those of the first write.
        """
        if not self._list.columns:
            return None
        end = self._end + len(decision.records)
        ids = identities.add(batch, self._end, decision.records)
        full = self._is_full(end - self._end)
        ends = self._era_ends(decision.dates.clock.now)
        self._merge_some(batch, end - self._end, give_way, growing=full)
        run = self._drafted(batch, self._lookup.open, give_way) if full else None
        cells, alone = self._new_cells(batch, decision, standing, end)
        left = self._emptied(self._end) if full else self._lookup.open
        last = None
        if ends and end > left.first:
            last = self._drafted(batch, left.with_new(cells, ids), give_way)
        give_way()
        return Prepared(ids, cells, alone, run, last, self._lookup.joined())

    def add(self, batch: WriteBatch, decision: Decision, prepared: Prepared | None) -> None:
        """Add the changes of buckets to a write, and what is due: a run, an era, dropping.

        Readers see them from now on, so nobody must read until the write is done.
        """
        if prepared is None:
            return
        self._lookup.take(prepared.filters)
        self._remember(decision, prepared.alone)
        listed = bool(self._merges) or prepared.run is not None
        dates, eras = decision.dates, self._list.eras
        now = dates.clock.now
        if self._end == eras.current.first:
            eras.begin(self._end, now)
            listed = True
        listed |= eras.note(now, dates.latest, self._window)
        for merge in list(self._merges):
            if merge.done and merge in self._merges:  # Another that ended may have ended it.
                self._finish(batch, merge)
        if prepared.run is not None:
            self._make_room(batch, 0)
            self._close_open_run(batch, prepared.run)
        ids, cells = prepared.ids, prepared.cells
        if len(cells.documents) or len(ids.documents):
            batch.put(number_key(OPEN_RUN, self._end), pack_open_cells(cells, ids))
            self._lookup.open.add(cells)
            self._lookup.open.put(ids)
        self._end += len(decision.records)
        listed |= self._next_era(batch, now, prepared.last)
        if listed:
            batch.put(RUNS, self._list.pack())

    def _remember(self, decision: Decision, alone: npt.NDArray[np.bool_]) -> None:
        """Keep the grown buckets in memory; what is there of others isn't what they are now."""
        self._recent.forget(decision.changed.take(alone))
        buckets = decision.buckets.take(np.flatnonzero(~alone))
        eras = np.full(len(buckets), self._list.eras.current.number)
        grown = Grown(eras, buckets.sizes, lows_of(buckets.entries))
        self._recent.put(decision.changed.take(~alone), grown)

    def _new_cells(
        self, batch: WriteBatch, decision: Decision, standing: Standing, end: int
    ) -> tuple[SortedCells, npt.NDArray[np.bool_]]:
        """Write the grown buckets; return cells of new buckets, and cells and marks of grown.

        Returns also which changed buckets are a single cell: bool[b].

        In each era in which a bucket has grown, it has a cell and a mark, so that it is found when
        earlier eras are dropped. One that has a single document, a new one, needs only a cell.
        Else the cell's document doesn't matter; it is one that the open run has, or will have.
        """
        if not decision.buckets:
            return self._cells(decision, {}, {}), np.zeros(0, np.bool_)
        latest = max(end - 1, self._lookup.open.first)
        keys = decision.changed
        celled, grown = standing.of(keys)
        buckets = decision.buckets
        filled, firsts = np.flatnonzero(buckets.sizes), np.zeros(len(buckets), np.int64)
        firsts[filled] = buckets.entries[buckets.starts[filled]]
        alone = (buckets.sizes == 1) & (firsts >= self._end) & ~celled & ~grown
        under = grown_key(self._list.eras.current.number, b"")
        written = buckets.take(np.flatnonzero(~alone))
        packed = pack_buckets(written.sizes, written.entries)
        for key, bucket in zip(keys.take(~alone).packed(), packed, strict=True):
            batch.put(under + key, bucket)
        new = np.flatnonzero(~celled & ~grown)
        documents = np.where(alone, firsts, latest)[new].tolist()
        marks = np.flatnonzero(~alone & ~grown).tolist()
        celled_by = dict(zip(new.tolist(), documents, strict=True))
        return self._cells(decision, celled_by, dict.fromkeys(marks, latest)), alone

    def _cells(self, decision: Decision, new: dict[int, int], marks: dict[int, int]) -> SortedCells:
        """Return all new buckets, and cells and marks of changed ones: documents by place."""
        latest = np.array([*new.values(), *marks.values()], np.int64)
        documents = np.concatenate((decision.cells.documents, latest))
        lows = (documents & (MARK - 1)).astype(np.uint32)
        lows[len(lows) - len(marks) :] |= np.uint32(MARK)
        keys = decision.cells.keys
        added = decision.changed.take(np.array(list(new), np.int64))
        grown = decision.changed.take(np.array(list(marks), np.int64))
        columns = np.concatenate((keys.columns, added.columns, grown.columns))
        hashes = np.concatenate((keys.hashes, added.hashes, marked(grown.hashes)))
        return SortedCells(self._lookup.slots(columns), hashes, lows)

    def _is_full(self, documents: int) -> bool:
        """Return whether the open run is closed before so many documents are added.

        Those of a write are in one run. A run has as nearly as possible the size that its filter
        and its pages are made for.
        """
        has = self._end - self._lookup.open.first
        return has > 0 and 2 * (self._list.run_documents - has) < documents

    def _era_ends(self, now: int | None) -> bool:
        """Return whether the current era ends with a write, after which it is ``now``, in ms.

        An empty era begins anew instead.
        """
        eras = self._list.eras
        return self._end > eras.current.first and eras.due(now, self._window)

    def _next_era(self, batch: WriteBatch, now: int | None, last: Draft | None) -> bool:
        """Begin an era if it is due, and drop what is older than the window; return whether.

        ``last`` is the last run of the era that ends.
        """
        eras = self._list.eras
        due = eras.due(now, self._window)
        if due:
            if last is not None:
                self._close_open_run(batch, last)
            eras.begin(self._end, now)
        dropped = eras.drop(now, self._window)
        if dropped:
            batch.delete_range(GROWN.low, grown_key(eras.kept[0].number, b""))
            for kind in (PREVIOUS, RENEWALS, VERDICTS):
                batch.delete_range(kind.low, number_key(kind, eras.first))
            RecordPages.drop(batch, eras.first)
            _log.debug("dropped %d eras: the documents before %d", dropped, eras.first)
        gone = self._list.dropped()
        for run in gone:
            self._delete(batch, run)
            self._lookup.forget(run.tier, [run.number])
        return due or bool(dropped) or bool(gone)

    def _delete(self, batch: WriteBatch, run: Run) -> None:
        batch.delete_range(*of_run(FILTERS, run.number))
        if run.merged:
            self._tables.leave(run.number)
        else:
            batch.delete_range(*of_run(CELLS, run.number))

    def _drafted(self, batch: WriteBatch, run: OpenRun, give_way: Callable[[], None]) -> Draft:
        return drafted(
            batch,
            run,
            give_way,
            number=self._list.new_number(),
            columns=len(self._list.columns),
            shape=self._list.shape(0),
        )

    def _close_open_run(self, batch: WriteBatch, draft: Draft) -> None:
        """Have a run of the lowest tier take the open run's place, and begin another."""
        batch.delete_range(*OPEN_RUN)
        run = Run(draft.number, 0, self._lookup.open.first, self._end, draft.cells)
        self._list.runs.append(run)
        self._lookup.know(run, draft.words)
        self._lookup.open = self._emptied(self._end)

    def _emptied(self, first: int) -> OpenRun:
        """Return an empty open run of the same size; ``first`` is its first document."""
        return OpenRun(len(self._list.columns), first, self._lookup.open.bits)

    def _merge_some(
        self, batch: WriteBatch, documents: int, give_way: Callable[[], None], *, growing: bool
    ) -> None:
        """Begin the merges that are due, and work on all.

        The work is in proportion to the new documents. ``growing`` is whether the lowest tier gets
        another whole run in this write. A merge of a tier that does ends first; see `_make_room`.
        What an era has left when it ends is a run, too, but the merge may just have begun: to end
        it would take seconds.
        """
        busy = {merge.plan.tier for merge in self._merges}
        for tier in sorted({run.tier for run in self._list.runs}):
            runs = self._list.to_merge(tier) if tier not in busy else []
            if runs:
                sources = [run.number for run in runs]
                plan = Merging(tier, sources, self._list.new_number())
                self._list.merging.append(plan)
                self._merges.append(self._merge(plan))
        tiers = {0} if growing else set()
        for merge in sorted(self._merges, key=attrgetter("plan.tier")):
            tier = merge.plan.tier
            merge.work(batch, self._due(merge.plan, documents), give_way)
            if tier in tiers and not merge.done:
                merge.end(batch, give_way)
            if merge.done:
                tiers.add(tier + 1)

    def _due(self, plan: Merging, documents: int) -> int:
        """Return how many cells to merge for so many new documents.

        The tier has another run after as many as one of those that are merged has.
        """
        sources = [run for run in self._list.runs if run.number in plan.sources]
        cells = sum(run.cells for run in sources)
        until_next = (sources[-1].end - sources[0].first) / len(sources)
        return ceil(_HASTE * cells * documents / until_next)

    def _make_room(self, batch: WriteBatch, tier: int) -> None:
        """End a merge of a tier that is to get another run, so that it never has many more."""
        for merge in list(self._merges):
            if merge.plan.tier == tier:
                merge.end(batch)
                self._finish(batch, merge)

    def _finish(self, batch: WriteBatch, merge: Merge) -> None:
        """Replace the runs that were merged by the one that was made."""
        plan = merge.plan
        self._merges.remove(merge)
        self._make_room(batch, plan.tier + 1)
        for run in self._list.replace(plan):
            self._delete(batch, run)
        self._lookup.forget(plan.tier, plan.sources)
        (made,) = (run for run in self._list.runs if run.number == plan.target)
        self._lookup.know(made, merge.words)
        _log.debug("merged %d cells into a run of tier %d", made.cells, made.tier)

    def _merge(self, plan: Merging) -> Merge:
        shapes = self._list.shape(plan.tier), self._list.shape(plan.tier + 1)
        return Merge(plan, len(self._list.columns), shapes, self._tables)
