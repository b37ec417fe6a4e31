"""The buckets that a batch comes to, while its documents are inserted into them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.index.buckets import Buckets, spread
from lsh.index.known import NEVER
from lsh.index.layout import BEYOND, BucketKeys
from lsh.ordered import first_of_each

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.buckets import BucketReader
    from lsh.index.cells import Cells
    from lsh.index.known import Known

__all__ = ["GrowingBuckets"]

_UNKNOWN = -1


class GrowingBuckets:
    """The buckets of a batch's r runs of cells, and finer ones, which have numbers from r on.

    Entries are in arrays: those that a bucket has are a part of one array, and a bucket that
    changes gets another part at its end.

    divided: how many have finer ones from now on, and had none.
    """

    def __init__(self, reader: BucketReader, cells: Cells, found: Buckets, known: Known) -> None:
        """Take the buckets that exist, by run; ``known`` learns the documents in them."""
        self._reader = reader
        self._known = known
        self._cells = cells.keys
        runs = len(cells.keys.hashes)
        changes = np.flatnonzero(first_of_each(cells.keys.columns))
        ordered = cells.keys.columns[changes].tolist()
        self._rank = {column: rank for rank, column in enumerate(ordered)}
        self._finer: dict[tuple[int, int], int] = {}
        self._finer_keys = BucketKeys.none()
        self.sizes, self._starts = np.zeros(runs, np.int64), np.zeros(runs, np.int64)
        self.beyond = np.zeros(runs, np.bool_)
        self._changed = np.zeros(runs, np.bool_)
        self._dropped = np.zeros(runs, np.bool_)
        self._entries = self._places = np.empty(0, np.int64)
        self._take(found.places, found)
        self.divided = 0

    def _take(self, numbers: NDArray[np.int64], found: Buckets) -> None:
        """Take the contents of buckets, int64[b], as they were read."""
        last = found.starts + found.sizes - 1
        beyond = found.entries[last] == BEYOND
        self.beyond[numbers] = beyond
        self.sizes[numbers] = found.sizes - beyond
        self._starts[numbers] = len(self._entries) + found.starts
        self._entries = np.concatenate((self._entries, found.entries))
        unknown = np.full(len(found.entries), _UNKNOWN)
        self._places = np.concatenate((self._places, unknown))

    def keys(self, numbers: NDArray[np.int64]) -> BucketKeys:
        """Return the keys of buckets: int64[k]."""
        runs = len(self._cells.hashes)
        if not len(self._finer):
            return self._cells.take(numbers)
        own = numbers < runs
        columns, hashes = np.empty(len(numbers), np.uint8), np.empty(len(numbers), np.uint64)
        columns[own], hashes[own] = self._cells.take(numbers[own])
        columns[~own], hashes[~own] = self._finer_keys.take(numbers[~own] - runs)
        return BucketKeys(columns, hashes)

    def finer(self, keys: BucketKeys) -> NDArray[np.int64]:
        """Return the numbers of k finer buckets: int64[k]; read those that are new here."""
        pairs = list(zip(keys.columns.tolist(), keys.hashes.tolist(), strict=True))
        new = [key for key in dict.fromkeys(pairs) if key not in self._finer]
        if new:
            first = len(self.sizes)
            columns, hashes = zip(*new, strict=True)
            self._read(BucketKeys(np.array(columns, np.uint8), np.array(hashes, np.uint64)), first)
            self._finer |= {key: first + place for place, key in enumerate(new)}
        return np.array([self._finer[key] for key in pairs], np.int64)

    def _read(self, keys: BucketKeys, first: int) -> None:
        """Read buckets, whose numbers follow ``first``."""
        ranks = np.array([self._rank[column] for column in keys.columns.tolist()], np.int64)
        order = np.lexsort((keys.hashes, ranks))
        found = Buckets.of(self._reader.buckets(keys.take(order)))
        more = len(keys.hashes)
        for name in ("sizes", "_starts", "beyond", "_changed", "_dropped"):
            grown = getattr(self, name)
            setattr(self, name, np.concatenate((grown, np.zeros(more, grown.dtype))))
        self._finer_keys = BucketKeys.joined([self._finer_keys, keys])
        self._take(first + order[found.places], found)

    def entries(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return all entries of buckets as places in ``known``.

        Returns int64[k], how many of each, and int64[e], those of one bucket after the other.

        Raises RecordMissing if one has no record.
        """
        sizes = self.sizes.take(numbers)
        return sizes, self._learned(spread(self._starts.take(numbers), sizes))

    def heads(self, numbers: NDArray[np.int64], begin: int, end: int) -> NDArray[np.int64]:
        """Return some of the first entries of buckets that have as many, as places in ``known``.

        Returns int64[k * (end - begin)], those of one bucket after the other.

        Raises RecordMissing if one has no record.
        """
        starts = self._starts.take(numbers)
        return self._learned((starts[:, None] + np.arange(begin, end)).reshape(-1))

    def _learned(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places in ``known`` of the entries at some places of their array: int64[e]."""
        places = self._places.take(at)
        unknown = np.flatnonzero(places == _UNKNOWN)
        if len(unknown):
            new = at.take(unknown)
            places[unknown] = self._known.places(self._entries.take(new))
            self._places[new] = places[unknown]
        return places

    def put(
        self,
        numbers: NDArray[np.int64],
        sizes: NDArray[np.int64],
        places: NDArray[np.int64],
        new: NDArray[np.int64],
    ) -> None:
        """Replace buckets, which differ, by some entries and a new one: int64[k] new places.

        sizes: int64[k], the other entries of each. places: int64[e], these.
        """
        if not len(numbers):
            return
        all_sizes = sizes + 1
        last = np.cumsum(all_sizes) - 1
        entries = np.empty(all_sizes.sum(), np.int64)
        others = np.ones(len(entries), np.bool_)
        others[last] = False
        entries[last], entries[others] = new, places
        self._starts[numbers] = len(self._entries) + last - sizes
        self.sizes[numbers] = all_sizes
        self._entries = np.concatenate((self._entries, self._known.numbers(entries)))
        self._places = np.concatenate((self._places, entries))
        self._changed[numbers] = True

    def divide(self, numbers: NDArray[np.int64], *, anew: bool) -> None:
        """Note in buckets that they have finer ones; ``anew``: also where that is noted."""
        first = np.zeros(len(self.sizes), np.bool_)
        first[numbers] = True
        first &= ~self.beyond
        self.divided += int(np.count_nonzero(first))
        self.beyond |= first
        self._changed |= first
        if anew:
            self._changed[numbers] = True

    def drop(self, numbers: NDArray[np.int64]) -> None:
        """Note which buckets, of the finest, have dropped an entry."""
        self._dropped[numbers] = True

    def note(self, numbers: NDArray[np.int64]) -> None:
        """Have buckets count as changed."""
        self._changed[numbers] = True

    def contents(self, numbers: NDArray[np.int64]) -> Buckets:
        """Return buckets with the numbers of their documents, by ascending numbers: int64[k]."""
        return self._contents(numbers)[0]

    def _contents(self, numbers: NDArray[np.int64]) -> tuple[Buckets, NDArray[np.int64]]:
        """Return buckets, and where ``known`` has each entry: int64[e], -1 if it isn't learned."""
        own = self.sizes[numbers]
        sizes = own + self.beyond[numbers]
        at = spread(np.cumsum(sizes) - sizes, own)
        stored = spread(self._starts[numbers], own)
        entries, places = np.full(sizes.sum(), BEYOND), np.full(sizes.sum(), _UNKNOWN)
        entries[at], places[at] = self._entries[stored], self._places[stored]
        return Buckets(numbers, sizes, entries), places

    def changed(self, oldest: int | None) -> Buckets:
        """Return the buckets that have changed, without what is forgotten or too old by now.

        Empty ones aren't written, so those that have dropped an entry get one that says nothing:
        what was dropped must not come back.

        oldest: the least time of an entry after the batch, in ms; None: any.
        """
        found, places = self._contents(np.flatnonzero(self._changed))
        of = np.repeat(np.arange(len(found)), found.sizes)
        known = np.flatnonzero(places != _UNKNOWN)
        columns = self.keys(found.places).columns[of[known]]
        least = None if oldest is None else np.full(len(known), oldest)
        live = self._known.live(places[known], columns, NEVER - 1, least)
        if live is None:
            return found
        kept = np.ones(len(places), np.bool_)
        kept[known] = live
        sizes = np.bincount(of[kept], minlength=len(found))
        emptied = np.flatnonzero((sizes == 0) & self._dropped[found.places])
        found.entries[found.starts[emptied]] = BEYOND
        kept[found.starts[emptied]], sizes[emptied] = True, 1
        return Buckets(found.places, sizes, found.entries[kept]).take(np.flatnonzero(sizes))
