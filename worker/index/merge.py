"""A merge of the runs of a tier into one run of the next, in steps of bounded work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from rocksdict import WriteBatch

from worker.index.filter_parts import filled
from worker.index.keyspace import filter_key, page_key
from worker.index.page_merge import merged
from worker.index.run_filters import zeroed
from worker.index.run_layout import FAN_IN, RunShape, packed_pages
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
        hashes, documents = self._merged(slot, range(first, first + self._pages))
        run, shape = self.plan.target, self._to
        pages = range(first * FAN_IN, (first + self._pages) * FAN_IN)
        packed = packed_pages(hashes, documents, shape, pages)
        self._tables.put(run, ((page_key(run, slot, page), cells) for page, cells in packed))
        part = filled(hashes, shape, pages)
        at = slot * shape.words + pages.start * shape.page_words
        self.words[at : at + len(part)] = part
        batch.put(filter_key(run, slot, pages.start), part.tobytes())
        self._done += 1
        self._cells += len(hashes)
        if self.done or self._tables.is_full(run):
            self._tables.finish(run, last=self.done)
            self.plan.done, self.plan.cells = self._done, self._cells

    def _merged(
        self, slot: int, pages: range
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
        """Return the cells in these pages of all runs; see `merged`."""
        runs = self.plan.sources
        wanted = [page_key(run, slot, page) for run in runs for page in pages]
        found = self._tables.get([run for run in runs for _ in pages], wanted)
        starts = range(0, len(found), len(pages))
        return merged([found[start : start + len(pages)] for start in starts], self._from.page_bits)
