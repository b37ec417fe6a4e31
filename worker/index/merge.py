"""A merge of the runs of a tier into one run of the next, in steps of bounded work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from rocksdict import WriteBatch

from worker.index.filter_parts import filled
from worker.index.keyspace import filter_key, page_key
from worker.index.run_filters import zeroed
from worker.index.run_layout import FAN_IN, MARK, RunShape, SortedCells, packed_pages, unpack_cells
from worker.index.run_list import Merging
from worker.index.run_tables import RunTables

__all__ = ["Merge"]

_PAGES_A_STEP = 16


class Merge:
    """Merges runs. A step merges the same few pages of all of them.

    A store that is reopened continues with the next step. The highest bits of a key choose its
    page in each tier, so a page of the runs that are read becomes eight pages of the new run.
    """

    def __init__(
        self,
        plan: Merging,
        columns: int,
        shapes: tuple[RunShape, RunShape],
        tables: RunTables,
    ) -> None:
        """Take the plan, which the steps bring up to date, and the shapes of both tiers.

        ``words`` is the new run's filter so far.
        """
        self.plan = plan
        self.words = zeroed(columns * shapes[1].words)
        self._from, self._to = shapes
        self._tables = tables
        self._done, self._cells = plan.done, plan.cells
        self._pages = min(_PAGES_A_STEP, self._from.pages)
        self._steps = columns * (self._from.pages // self._pages)

    @property
    def done(self) -> bool:
        """Return whether all pages are merged."""
        return self._done == self._steps

    def work(
        self, batch: WriteBatch, cells: int, give_way: Callable[[], None] = lambda: None
    ) -> None:
        """Merge at least so many cells into a write, if so many are left.

        ``give_way`` is called before each step.
        """
        enough = self._cells + cells
        while not self.done and self._cells < enough:
            give_way()
            self._step(batch)

    def end(self, batch: WriteBatch, give_way: Callable[[], None] = lambda: None) -> None:
        """Merge all cells that are left into a write; see `work`."""
        while not self.done:
            give_way()
            self._step(batch)

    def _step(self, batch: WriteBatch) -> None:
        slot, group = divmod(self._done, self._from.pages // self._pages)
        first = group * self._pages
        cells = self._merged(slot, range(first, first + self._pages))
        for _, page, packed in packed_pages(cells, self._to):
            self._tables.put(self.plan.target, page_key(self.plan.target, slot, page), packed)
        first_page, pages = first * FAN_IN, self._pages * FAN_IN
        at = slot * self._to.words + first_page * self._to.page_words
        size = pages * self._to.page_words
        part = filled(cells.hashes, self._to, range(first_page, first_page + pages))
        self.words[at : at + size] = part
        batch.put(filter_key(self.plan.target, slot, first_page), part.tobytes())
        self._done += 1
        self._cells += len(cells.hashes)
        if self.done or self._tables.is_full(self.plan.target):
            self._tables.finish(self.plan.target, last=self.done)
            self.plan.done, self.plan.cells = self._done, self._cells

    def _merged(self, slot: int, pages: range) -> SortedCells:
        """Return the cells in these pages of all runs, sorted; of equal ones only the newest."""
        sources = [run for run in self.plan.sources for _ in pages]
        wanted = [page_key(run, slot, page) for run in self.plan.sources for page in pages]
        found = self._tables.get(sources, wanted)
        read = [unpack_cells(page) for page in found if page is not None]
        hashes = np.concatenate([np.empty(0, np.uint64), *(keys for keys, _ in read)])
        documents = np.concatenate([np.empty(0, np.uint32), *(found for _, found in read)])
        # Each run is sorted already, which a stable sort makes use of.
        order: npt.NDArray[np.intp] = np.argsort(hashes, kind="stable")
        order = order[_newest(hashes[order], documents[order])]
        slots = np.full(len(order), slot, np.uint8)
        return SortedCells(slots, hashes[order], documents[order])


def _newest(
    hashes: npt.NDArray[np.uint64], documents: npt.NDArray[np.uint32]
) -> npt.NDArray[np.bool_]:
    """Return which cells no newer one with the same key follows, among sorted ones: bool[n]."""
    newest = np.ones(len(hashes), bool)
    newest[:-1] = (hashes[1:] != hashes[:-1]) | ((documents[1:] ^ documents[:-1]) >= MARK)
    return newest
