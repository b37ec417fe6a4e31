"""Looks cells up: in the open run, and in the runs whose filters say that they may have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rocksdict import Rdict

from lsh.index import BucketKeys
from lsh.index.buckets import spread
from lsh.index.layout import numbers_before
from lsh.ordered import first_of_each, without_repeats
from worker.index.keyspace import FILTERS, OPEN_RUN, RUNS, of_run, page_key, place_in
from worker.index.open_run import OpenRun, newest_cells, unpack_open_cells
from worker.index.run_filters import Joined, Probes, TierFilters, zeroed
from worker.index.run_layout import RunShape, find_in_page, marked
from worker.index.run_list import ID_COLUMN, Run, RunList
from worker.index.run_tables import Pages
from worker.index.spans import span

__all__ = ["ErasGrown", "Get", "RunLookup", "Suspects", "read_filter"]

_UNKNOWN = 255
_ERA_BITS = 32
_FEW = 256
"""Buckets whose cells and marks are asked for at once. Of many, most are absent."""

Get = Callable[[list[bytes]], list[bytes | None]]
"""Reads keys of a store."""


class Suspects(NamedTuple):
    """The buckets that may exist, by the places of their keys in a look-up.

    open_places, documents: int64[k], those in the open run, ascending, and their documents. places,
    runs: int64[m], which keys may be in which runs.
    """

    open_places: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    runs: npt.NDArray[np.int64]

    @classmethod
    def none(cls) -> Suspects:
        """Return no suspects."""
        return cls(*[np.empty(0, np.int64)] * 4)

    def all_places(self) -> npt.NDArray[np.int64]:
        """Return the places of all suspects: int64[s], ascending."""
        return without_repeats(np.concatenate((self.open_places, self.places)))

    def parted(self, place: int) -> tuple[Suspects, Suspects]:
        """Return those before a place, and the others, whose places are counted from there."""
        first = int(np.searchsorted(self.open_places, place))
        before = self.places < place
        here, there = np.flatnonzero(before), np.flatnonzero(~before)
        return Suspects(
            self.open_places[:first], self.documents[:first], self.places[here], self.runs[here]
        ), Suspects(
            self.open_places[first:] - place,
            self.documents[first:],
            self.places[there] - place,
            self.runs[there],
        )


class ErasGrown(NamedTuple):
    """In which eras buckets may have grown: int64[m] each.

    places: of keys, ascending. eras: they ascend for each place.
    """

    places: npt.NDArray[np.int64]
    eras: npt.NDArray[np.int64]

    @classmethod
    def none(cls) -> ErasGrown:
        """Return that none has grown."""
        return cls(*[np.empty(0, np.int64)] * 2)

    def among(self, places: npt.NDArray[np.int64]) -> ErasGrown:
        """Return those at some places, int64[k] ascending, with indices into these."""
        if not len(places):
            return self.none()
        at = np.minimum(np.searchsorted(places, self.places), len(places) - 1)
        here = np.flatnonzero(places[at] == self.places)
        return ErasGrown(at[here], self.eras[here])


class _Runs(NamedTuple):
    """Runs by ascending numbers: int64[r] each.

    firsts, ends: their first documents, and those behind their last ones.
    """

    numbers: npt.NDArray[np.int64]
    tiers: npt.NDArray[np.int64]
    firsts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    @classmethod
    def of(cls, runs: Iterable[Run]) -> _Runs:
        each = sorted((run.number, run.tier, run.first, run.end) for run in runs)
        return cls(*np.array(each, np.int64).reshape(-1, len(cls._fields)).T)

    def take(self, numbers: npt.NDArray[np.int64]) -> _Runs:
        """Return the runs with these numbers, in their order."""
        at = np.searchsorted(self.numbers, numbers)
        return _Runs._make(part[at] for part in self)


class RunLookup:
    """The runs of a store, their filters in memory, and the open run.

    Methods raise what ``get``, ``pages`` and rocksdict raise. ``list`` are the runs, ``open`` is
    the open run.
    """

    def __init__(
        self,
        db: Rdict,
        get: Get,
        pages: Pages,
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
        self._stored = pages
        (packed,) = get([RUNS])
        self.list = RunList.unpack(packed, run_documents)
        self.open = OpenRun(0, 0)
        self._slots = np.full(256, _UNKNOWN, np.uint8)
        self._tiers: list[TierFilters] = []
        self._by_number: dict[int, Run] = {}
        self._runs = _Runs.of([])
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
        if not self.list.columns:
            return Suspects.none()
        slots = self.slots(keys.columns)
        return self._suspects(slots, keys.hashes, np.zeros(len(slots), np.bool_))

    def suspects_grown(self, keys: BucketKeys) -> tuple[Suspects, ErasGrown]:
        """Return what `suspects` does, and in which eras these suspects may have grown.

        To ask for the cells and marks of a few buckets takes hardly longer than for the cells; then
        what has grown may include buckets that aren't suspects.
        """
        if not self.list.columns:
            return Suspects.none(), ErasGrown.none()
        if len(keys.hashes) > _FEW:
            found = self.suspects(keys)
            places = found.all_places()
            grown = self.eras_grown(keys.take(places))
            return found, ErasGrown(places[grown.places], grown.eras)
        slots, count = self.slots(keys.columns), len(keys.hashes)
        both = self._suspects(
            np.concatenate((slots, slots)),
            np.concatenate((keys.hashes, marked(keys.hashes))),
            np.arange(2 * count) >= count,
        )
        cells, marks = both.parted(count)
        return cells, self._eras(marks)

    def _suspects(
        self,
        slots: npt.NDArray[np.uint8],
        hashes: npt.NDArray[np.uint64],
        marks: npt.NDArray[np.bool_],
    ) -> Suspects:
        """Return which of n cells, or marks, there may be."""
        found = self._in_runs(Probes(slots, hashes))
        return Suspects(*self.open.find(slots, hashes, marks), *found)

    def _in_runs(self, probes: Probes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return which cells may be in which runs: two arrays, int64[m]."""
        none = np.empty(0, np.int64)
        found = [tier.find(probes) for tier in self._tiers]
        return (
            np.concatenate([none, *(places for places, _ in found)]),
            np.concatenate([none, *(runs for _, runs in found)]),
        )

    def eras_grown(self, keys: BucketKeys) -> ErasGrown:
        """Return in which eras these buckets may have grown. In others they haven't."""
        slots, hashes = self._slots[keys.columns], marked(keys.hashes)
        return self._eras(self._suspects(slots, hashes, np.ones(len(slots), np.bool_)))

    def _eras(self, marks: Suspects) -> ErasGrown:
        """Return in which eras buckets have grown whose marks are these suspects."""
        eras, asked = self.list.eras, self._runs.take(marks.runs)
        first, last = eras.of_each(asked.firsts), eras.of_each(asked.ends - 1)
        counts = last - first + 1
        pairs = without_repeats(
            np.concatenate((np.repeat(marks.places, counts), marks.open_places)) << _ERA_BITS
            | np.concatenate(
                (spread(first, counts), np.full(len(marks.open_places), eras.current.number))
            )
        )
        return ErasGrown(pairs >> _ERA_BITS, pairs & ((1 << _ERA_BITS) - 1))

    def newest(
        self, keys: BucketKeys, suspects: Suspects, after: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the document of the newest cell of each of n keys: int64[n], -1 if it has none.

        after: int64[n], cells of documents up to this era may be passed over; None: of none.
        """
        found = np.full(len(keys.hashes), -1)
        found[suspects.open_places] = suspects.documents
        left = found[suspects.places] < 0
        ends = self._runs.take(suspects.runs).ends
        if after is not None:
            left &= self.list.eras.of_each(ends - 1) > after[suspects.places]
        places, runs = suspects.places[left], suspects.runs[left]
        order = np.lexsort((-ends[left], places))
        places, runs = places[order], runs[order]
        if not len(places):
            return found
        newest = first_of_each(places)
        found[places[newest]] = self._documents(keys.take(places[newest]), runs[newest])
        # A filter was wrong about the others, and mostly those of earlier runs are, too. These are
        # read together: a round for each would take longer than their pages.
        others = np.flatnonzero(~newest & (found[places] < 0))
        if len(others):
            documents = self._documents(keys.take(places[others]), runs[others])
            there = np.flatnonzero(documents >= 0)[::-1]
            # The last one of a place stays: that of its newest run.
            found[places[others[there]]] = documents[there]
        return found

    def _documents(self, keys: BucketKeys, runs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the document of each key in one run: int64[k], -1 where it isn't.

        keys: in the order of the columns and ascending.
        """
        # RocksDB reads pages fastest in the order of their keys.
        order = np.argsort(runs, kind="stable")
        keys, runs = keys.take(order), runs[order]
        asked = self._runs.take(runs)
        pages = self._pages(keys.hashes, asked.tiers)
        slots = self._slots[keys.columns]
        wanted = list(map(page_key, runs.tolist(), slots.tolist(), pages.tolist()))
        read = self._stored.get(runs.tolist(), wanted)
        lows = np.array(
            [
                -1 if page is None else find_in_page(page, key)
                for page, key in zip(read, keys.hashes.tolist(), strict=True)
            ],
            np.int64,
        )
        found = np.empty(len(runs), np.int64)
        found[order] = np.where(lows < 0, lows, numbers_before(lows, asked.ends))
        return found

    def _pages(
        self, hashes: npt.NDArray[np.uint64], tiers: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return the page of each key in a run of a tier: int64[k]."""
        pages = np.empty(len(hashes), np.int64)
        for tier in without_repeats(tiers).tolist():
            mine = tiers == tier
            pages[mine] = self.list.shape(tier).page(hashes[mine])
        return pages

    def know(self, run: Run, words: npt.NDArray[np.uint64]) -> None:
        """Ask a run from now on. ``words`` is its filter."""
        while len(self._tiers) <= run.tier:
            tier = len(self._tiers)
            self._tiers.append(TierFilters(self.list.shape(tier), tier))
        self._tiers[run.tier].add(run.number, words)
        self._by_number[run.number] = run
        self._runs = _Runs.of(self._by_number.values())

    def joined(self) -> Joined:
        """Return the filters with new ones interleaved, for `take`; see `TierFilters.joined`."""
        return [tier.joined() for tier in self._tiers]

    def take(self, joined: Joined) -> None:
        """Ask these filters from now on."""
        for tier, groups in zip(self._tiers, joined, strict=True):
            tier.take(groups)

    def forget(self, tier: int, numbers: Sequence[int]) -> None:
        """Ask runs of a tier no more."""
        self._tiers[tier].remove(np.array(numbers))
        for number in numbers:
            del self._by_number[number]
        self._runs = _Runs.of(self._by_number.values())

    def _read_filters(self, db: Rdict, on_cells: Callable[[int, int], None]) -> None:
        total = sum(run.cells for run in self.list.runs)
        for run in self.list.runs:
            shape = self.list.shape(run.tier)
            words = zeroed(len(self.list.columns) * shape.words)
            if read_filter(db, run.number, shape, words) != len(words):
                raise ValueError(f"the filter of run {run.number} isn't whole")
            self.know(run, words)
            self.take(self.joined())
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
