"""The buckets of a batch while its documents are inserted into them.

Most are in arrays. Lists are those that are full, have finer ones, or may get some in this batch,
and those of documents that are judged one by one.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.index.buckets import Buckets, spread
from lsh.index.chains import Chains
from lsh.index.layout import BEYOND
from lsh.index.update import Updated, update

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.buckets import BucketReader
    from lsh.index.cells import Cells
    from lsh.index.layout import Bucket, BucketKeys
    from lsh.index.match import Known
    from lsh.index.rules import BucketRules

__all__ = ["GrowingBuckets", "Met"]


class Met(NamedTuple):
    """The entries that the documents of c cells meet in the buckets of these.

    sizes: int64[c], how many of each cell. entries: int64[e], those of one cell after the other.
    """

    sizes: NDArray[np.int64]
    entries: NDArray[np.int64]

    @property
    def starts(self) -> NDArray[np.int64]:
        """Return int64[c], where the entries of each cell begin."""
        starts: NDArray[np.int64] = np.cumsum(self.sizes) - self.sizes
        return starts

    def cells(self) -> NDArray[np.int64]:
        """Return int64[e], the cell of each entry."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def take(self, kept: NDArray[np.bool_]) -> Met:
        """Return what is met of some entries: bool[e]."""
        sizes = np.bincount(self.cells()[kept], minlength=len(self.sizes))
        return Met(sizes, self.entries[kept])


class GrowingBuckets:
    """The buckets of a batch's r runs of cells, and finer ones, which have numbers from r on.

    listed: bool[r], the runs whose buckets are lists: these are in ``lists``, with the finer ones.
    divided: how many became full, and have finer ones from now on. dropped: how many entries were
    removed.
    """

    def __init__(  # noqa: PLR0913, PLR0917 -- what documents have, and what was read
        self,
        reader: BucketReader,
        cells: Cells,
        sketches: NDArray[np.uint8],
        found: Buckets,
        known: Known,
        rules: BucketRules,
    ) -> None:
        """Take the buckets that exist, by run, and what is known of the documents in them.

        Raises RecordMissing if a finer one names a document that has no record.
        """
        runs = len(cells.sizes)
        self._rules = rules
        self._sizes, self._starts = np.zeros(runs, np.int64), np.zeros(runs, np.int64)
        self._sizes[found.places], self._starts[found.places] = found.sizes, found.starts
        self._entries = found.entries
        self._grown = np.zeros(runs, bool)
        # The documents of the batch itself may fill a bucket.
        self.listed = self._sizes + cells.sizes > rules.capacity
        self.listed[found.places[found.entries[found.starts + found.sizes - 1] == BEYOND]] = True
        lists = self._of(np.flatnonzero(self.listed)).by_place()
        self._chains = Chains(reader, cells, sketches, lists, rules, known)
        self.lists = self._chains.contents
        self._changed: set[int] = set()
        self.divided = self.dropped = 0

    def _of(self, runs: NDArray[np.int64]) -> Buckets:
        """Return some of the buckets that are in arrays, by run: int64[k]."""
        sizes = self._sizes[runs]
        return Buckets(runs, sizes, self._entries[spread(self._starts[runs], sizes)])

    def list_all(self, runs: NDArray[np.int64]) -> None:
        """Make lists of the buckets of some runs: int64[k]."""
        runs = runs[~self.listed[runs]]
        self.lists |= self._of(runs).by_place()
        self._changed.update(runs[self._grown[runs]].tolist())
        self.listed[runs], self._grown[runs] = True, False

    def chain(self, row: int, run: int, oldest: int | None) -> list[int]:
        """Return the numbers of the buckets that a document comes to; see `Chains.of`."""
        return self._chains.of(row, run, oldest)

    def column(self, number: int) -> int:
        """Return the column of a bucket."""
        return self._chains.column(number)

    def keys(self, numbers: NDArray[np.int64]) -> BucketKeys:
        """Return the keys of buckets, by ascending numbers."""
        return self._chains.keys(numbers)

    def met(self, runs: NDArray[np.int64], chains: dict[int, list[int]]) -> Met:
        """Return the entries that documents meet in c cells.

        runs: int64[c]. chains: those of the cells whose buckets are lists, by place of the cell.
        """
        single = np.ones(len(runs), bool)
        single[list(chains)] = False
        in_chains = [
            [entry for number in numbers for entry in self.lists[number] if entry != BEYOND]
            for numbers in chains.values()
        ]
        sizes = self._sizes[runs]
        sizes[~single] = [len(entries) for entries in in_chains]
        entries = np.empty(sizes.sum(), np.int64)
        of_single = np.repeat(single, sizes)
        entries[of_single] = self._of(runs[single]).entries
        entries[~of_single] = [*chain.from_iterable(in_chains)]
        return Met(sizes, entries)

    def changed_in(self, runs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which buckets in arrays have changed: bool[k]."""
        return self._grown[runs]

    def put(self, runs: NDArray[np.int64], met: Met, new: NDArray[np.int64]) -> None:
        """Replace buckets in arrays by what is met in them; insert documents.

        runs: int64[c]. new: int64[c], the document to insert; `BEYOND` for none.
        """
        inserted = new != BEYOND
        sizes = met.sizes + inserted
        entries = np.empty(sizes.sum(), np.int64)
        last = np.zeros(len(entries), bool)
        last[(np.cumsum(sizes) - 1)[inserted]] = True
        entries[last], entries[~last] = new[inserted], met.entries
        self._starts[runs] = len(self._entries) + np.cumsum(sizes) - sizes
        self._sizes[runs] = sizes
        self._entries = np.concatenate((self._entries, entries))
        self._grown[runs[inserted]] = True

    def insert(self, chain: list[int], document: int, similar: dict[int, float]) -> Updated:
        """Insert a document into one of the buckets of a chain; see `update`."""
        updated = update(chain, self.lists, document, similar, self._rules)
        self.dropped += updated.dropped
        if updated.entry is None:
            self._changed.add(updated.place)
            self.go_beyond(chain, updated.place)
        return updated

    def go_beyond(self, chain: list[int], place: int) -> None:
        """Note in the buckets before one that has changed that they have finer ones.

        With a window, the note is written anew, since what is older is given back.
        """
        for number in chain[: chain.index(place)]:
            bucket = self.lists[number]
            if bucket[-1:] != [BEYOND]:
                bucket.append(BEYOND)
                self._changed.add(number)
                self.divided += 1
            elif self._rules.window_ms is not None:
                self._changed.add(number)

    def holding(self, numbers: set[int]) -> dict[int, Bucket]:
        """Return buckets by number."""
        in_arrays = np.array(sorted(numbers - self.lists.keys()), np.int64)
        listed = {number: self.lists[number] for number in numbers & self.lists.keys()}
        return listed | self._of(in_arrays).by_place()

    def note(self, number: int) -> None:
        """Have a bucket count as changed."""
        if number in self.lists:
            self._changed.add(number)
        else:
            self._grown[number] = True

    def changed(self, gone: set[int]) -> Buckets:
        """Return the buckets that have changed, by number, without the documents that are gone."""
        lists = {number: self.lists[number] for number in sorted(self._changed)}
        if gone:
            lists = {
                number: [entry for entry in bucket if entry not in gone]
                for number, bucket in lists.items()
            }
        return Buckets.joined([self._of(np.flatnonzero(self._grown)), Buckets.of(lists)])
