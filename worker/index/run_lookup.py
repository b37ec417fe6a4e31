"""Looks cells up: in the open run, and in the runs whose filters say that they may have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rocksdict import Rdict

from lsh.index import BucketKeys
from lsh.index.layout import number_before
from worker.index.keyspace import FILTERS, OPEN_RUN, RUNS, of_run, page_key, place_in
from worker.index.open_run import OpenRun, newest_cells, unpack_open_cells
from worker.index.run_filters import Probes, TierFilters, zeroed
from worker.index.run_layout import RunShape, find_in_page, marked
from worker.index.run_list import ID_COLUMN, Run, RunList
from worker.index.spans import span

__all__ = ["Get", "RunLookup", "Suspects", "read_filter"]

_UNKNOWN = 255

Get = Callable[[list[bytes]], list[bytes | None]]
"""Reads keys of a store."""


class Suspects(NamedTuple):
    """The buckets that may exist, by the places of their keys in a look-up.

    known: the documents of those in the open run. places, runs: int64[m], which keys may be in
    which runs.
    """

    known: dict[int, int]
    places: npt.NDArray[np.int64]
    runs: npt.NDArray[np.int64]

    def all_places(self) -> list[int]:
        """Return the places of all suspects, ascending."""
        return sorted({*self.known, *self.places.tolist()})

    def by_place(self) -> dict[int, list[int]]:
        """Return the runs that those may be in that are not in the open run, by place."""
        runs: dict[int, list[int]] = {}
        for place, number in zip(self.places.tolist(), self.runs.tolist(), strict=True):
            if place not in self.known:
                runs.setdefault(place, []).append(number)
        return runs


class RunLookup:
    """The runs of a store, their filters in memory, and the open run.

    Methods raise what ``get`` and rocksdict raise. ``list`` are the runs, ``open`` is the open run.
    """

    def __init__(
        self,
        db: Rdict,
        get: Get,
        run_documents: int,
        on_cells: Callable[[int, int], None] = lambda _count, _total: None,
    ) -> None:
        """Read the list of runs, their filters and the cells of the open run.

        ``run_documents`` is for a new store; another keeps what it was made with. ``on_cells`` is
        called with how many cells' filters were just read, and the total; it may raise.

        Raises:
            ReadingEnded: not everything can be read.
            ValueError: something isn't as it was written.
        """
        self._get = get
        (packed,) = get([RUNS])
        self.list = RunList.unpack(packed, run_documents)
        self.open = OpenRun(0, 0)
        self._slots = np.full(256, _UNKNOWN, np.uint8)
        self._tiers: list[TierFilters] = []
        self._by_number: dict[int, Run] = {}
        if self.list.columns:
            self._take_columns()
            self._read_filters(db, on_cells)
            self.open.add(newest_cells(unpack_open_cells(cells for _, cells in span(db, OPEN_RUN))))

    @property
    def cells(self) -> int:
        """Return how many cells there are."""
        return len(self.open) + sum(run.cells for run in self.list.runs)

    @property
    def size_bytes(self) -> int:
        """Return the size in memory of the open run and all filters."""
        return self.open.size_bytes + sum(tier.size_bytes for tier in self._tiers)

    def begin(self, columns: Sequence[int]) -> None:
        """Set the columns of an empty store."""
        self.list.columns = list(columns)
        self._take_columns()

    def _take_columns(self) -> None:
        columns = self.list.columns
        self._slots[columns] = np.arange(len(columns))
        self.open = OpenRun(len(columns), self.list.end)

    def slots(self, columns: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the places of columns, uint8[n], among those of the store.

        Raises:
            ValueError: the store doesn't have one of them.
        """
        slots: npt.NDArray[np.uint8] = self._slots[columns]
        if slots.max(initial=0) == _UNKNOWN:
            known = [column for column in self.list.columns if column != ID_COLUMN]
            raise ValueError(f"a column that isn't one of {known}")
        return slots

    def suspects(self, keys: BucketKeys) -> Suspects:
        """Return which of these buckets may exist. All others don't."""
        none = np.empty(0, np.int64)
        if not self.list.columns:
            return Suspects({}, none, none)
        slots = self.slots(keys.columns)
        open_places, documents = self.open.find(slots, keys.hashes)
        known = dict(zip(open_places.tolist(), documents.tolist(), strict=True))
        probes = Probes(slots, keys.hashes)
        found = [tier.find(probes) for tier in self._tiers]
        places = np.concatenate([none, *(which for which, _ in found)])
        runs = np.concatenate([none, *(numbers for _, numbers in found)])
        return Suspects(known, places, runs)

    def eras_grown(self, keys: BucketKeys) -> dict[int, list[int]]:
        """Return in which eras these buckets may have grown, by place. In others they haven't."""
        slots, hashes = self._slots[keys.columns], marked(keys.hashes)
        eras = self.list.eras
        open_places, _ = self.open.find(slots, hashes, marks=True)
        found = {place: {eras.current.number} for place in open_places.tolist()}
        probes = Probes(slots, hashes)
        for tier in self._tiers:
            for place, number in zip(*(part.tolist() for part in tier.find(probes)), strict=True):
                run = self._by_number[number]
                found.setdefault(place, set()).update(eras.overlapping(run.first, run.end))
        return {place: sorted(some) for place, some in found.items()}

    def later(self, numbers: Iterable[int], era: int) -> list[int]:
        """Return the runs that have documents of later eras."""
        eras = self.list.eras
        return [n for n in numbers if eras.of(self._by_number[n].end - 1) > era]

    def newest(self, keys: BucketKeys, runs: Mapping[int, list[int]]) -> dict[int, int]:
        """Return the document of the newest cell of each key that has one, by place.

        ``runs`` are the numbers of those that may have them, by place.
        """
        ends = {number: run.end for number, run in self._by_number.items()}
        left = {place: sorted(some, key=ends.__getitem__) for place, some in runs.items() if some}
        found: dict[int, int] = {}
        while left:
            asked = np.array([numbers.pop() for numbers in left.values()])
            found |= self._documents(keys, np.array(list(left)), asked)
            left = {place: some for place, some in left.items() if some and place not in found}
        return found

    def _documents(
        self, keys: BucketKeys, places: npt.NDArray[np.int64], runs: npt.NDArray[np.int64]
    ) -> dict[int, int]:
        """Return the documents of the cells that exist, by place, for one run for each place."""
        pages, parts = self._pages(keys.hashes[places], runs)
        slots = self._slots[keys.columns[places]]
        wanted = list(map(page_key, runs.tolist(), slots.tolist(), pages.tolist()))
        hashes = keys.hashes[places].astype("<u8").view("V8").tolist()
        found = {}
        for place, run, key, part, page in zip(
            places.tolist(), runs.tolist(), hashes, parts.tolist(), self._get(wanted), strict=True
        ):
            low = find_in_page(page, key, part) if page is not None else None
            if low is not None:
                found[place] = number_before(low, self._by_number[run].end)
        return found

    def _pages(
        self, hashes: npt.NDArray[np.uint64], runs: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the page of each key in a run, and where in the page it is expected."""
        numbers, which = np.unique(runs, return_inverse=True)
        tiers = np.array([self._by_number[number].tier for number in numbers.tolist()], np.int64)
        pages, parts = np.empty(len(hashes), np.int64), np.empty(len(hashes))
        for tier in set(tiers.tolist()):
            mine = tiers[which] == tier
            shape = self.list.shape(tier)
            pages[mine] = shape.page(hashes[mine])
            parts[mine] = shape.part(hashes[mine])
        return pages, parts

    def know(self, run: Run, words: npt.NDArray[np.uint64]) -> None:
        """Ask a run from now on. ``words`` is its filter."""
        while len(self._tiers) <= run.tier:
            tier = len(self._tiers)
            self._tiers.append(TierFilters(self.list.shape(tier), tier))
        self._tiers[run.tier].add(run.number, words)
        self._by_number[run.number] = run

    def forget(self, tier: int, numbers: Sequence[int]) -> None:
        """Ask runs of a tier no more."""
        self._tiers[tier].remove(np.array(numbers))
        for number in numbers:
            del self._by_number[number]

    def _read_filters(self, db: Rdict, on_cells: Callable[[int, int], None]) -> None:
        total = sum(run.cells for run in self.list.runs)
        for run in self.list.runs:
            shape = self.list.shape(run.tier)
            words = zeroed(len(self.list.columns) * shape.words)
            if read_filter(db, run.number, shape, words) != len(words):
                raise ValueError(f"the filter of run {run.number} isn't whole")
            self.know(run, words)
            on_cells(run.cells, total)


def read_filter(db: Rdict, number: int, shape: RunShape, words: npt.NDArray[np.uint64]) -> int:
    """Read the parts of a run's filter that are stored into ``words``; return how many words.

    Raises:
        ReadingEnded: not everything can be read.
        ValueError: a part doesn't fit.
    """
    read = 0
    for key, value in span(db, of_run(FILTERS, number)):
        place = place_in(key)
        part = np.frombuffer(value, np.uint64)
        first = place.slot * shape.words + place.page * shape.page_words
        words[first : first + len(part)] = part
        read += len(part)
    return read
