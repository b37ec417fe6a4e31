"""How documents go through their buckets: which entries they meet, and where each one ends.

A document comes to the bucket of a key. There,

- an entry that is all but identical to the document stands for it (`BucketRules.absorb`);
- in a crowded bucket (`BucketRules.crowded`), those that came first are looked at one after the
  other. The first of them that covers the document (`BucketRules.covers`) stands for it, and no
  later one is looked at. If none does: in a full bucket, any entry that covers the document stands
  for it;
- else the document is inserted, or, if the bucket is full, goes on to a finer one; see
  `lsh.index.finer`. There the same holds.

So a flood of texts from one mould ends in the first bucket of a key, after a few comparisons, and
adds nothing to it. Every decision about a bucket depends only on its entries and the sketches.
Nothing in one column depends on another column, or on which index holds it, so the verdicts don't
depend on how the columns are divided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.index.buckets import spread
from lsh.index.finer import LEVELS, finer_keys
from lsh.index.layout import BucketKeys
from lsh.sketch import pairwise_similarity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.growing import GrowingBuckets
    from lsh.index.known import Known
    from lsh.index.rules import BucketRules

__all__ = ["Ends", "Pairs", "Walk"]

_PAIRS_AT_ONCE = 1 << 12
"""Sketches that are compared at a time, so that memory is bounded and the arrays stay in cache."""
_NONE = -1
_READ_TOGETHER = {some.start: some for some in (range(1), range(1, LEVELS))}
"""Levels whose finer buckets are read at once. To read those of several levels takes little longer
than those of one. Among unlike documents, hardly any goes beyond the first; in a flood, one that
does mostly goes far."""
_FEW = 64
"""Cells that are compared with all other first entries at once, if the first one doesn't stand: to
look at these a few at a time takes longer than to read their records."""


class Pairs(NamedTuple):
    """Comparisons: int64[p], of which cell or row, and the entries' places; float64[p], estimates.

    A document may meet an entry in several buckets, so pairs of a row repeat.
    """

    of: NDArray[np.int64]
    places: NDArray[np.int64]
    alike: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: list[Pairs]) -> Pairs:
        """Return the pairs of several."""
        none = cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        return cls(*map(np.concatenate, zip(none, *parts, strict=True)))

    def take(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Pairs:
        """Return some of the pairs."""
        if which.dtype == np.bool_:
            which = np.flatnonzero(which)
        return Pairs(self.of.take(which), self.places.take(which), self.alike.take(which))


class Content(NamedTuple):
    """The live entries of the buckets that k cells end in, before a document is inserted.

    cells: int64[k], ascending. sizes: int64[k]. places: int64[e].
    """

    cells: NDArray[np.int64]
    sizes: NDArray[np.int64]
    places: NDArray[np.int64]


@dataclass(slots=True)
class Ends:
    """Where the documents of c cells end.

    path: int64[c, LEVELS + 1], the buckets on the way, -1 behind the last. level: int64[c], of the
    one that has the entry that stands for the document, or into which it goes. into:
    int64[c], of the first one on the way that has room. standing: int64[c],
    the place of that entry, or -1 if there is none. covered: bool[c], whether it is less similar
    than `absorb` asks for. dropped: bool[c], whether the oldest entry makes room. missed: bool[c],
    whether some entry on the way was forgotten or too old. contents: by level, of the buckets that
    may take a document. pairs: the comparisons, by cell.
    """

    path: NDArray[np.int64]
    level: NDArray[np.int64]
    into: NDArray[np.int64]
    standing: NDArray[np.int64]
    covered: NDArray[np.bool_]
    dropped: NDArray[np.bool_]
    missed: NDArray[np.bool_]
    contents: list[tuple[int, Content]]
    pairs: Pairs

    @property
    def last(self) -> NDArray[np.int64]:
        """Return the bucket that each cell ends in: int64[c]."""
        ends: NDArray[np.int64] = self.path[np.arange(len(self.level)), self.level]
        return ends


class Walk:
    """The way of documents through buckets that don't change meanwhile."""

    def __init__(  # noqa: PLR0913, PLR0917 -- what a way depends on
        self,
        buckets: GrowingBuckets,
        known: Known,
        rules: BucketRules,
        sketches: NDArray[np.uint8],
        rows: NDArray[np.int64],
        runs: NDArray[np.int64],
        oldest: NDArray[np.int64] | None,
    ) -> None:
        """Take the cells of documents.

        sketches: uint8[n, slots]. rows: int64[c], the document of each cell. runs: int64[c], its
        bucket. oldest: int64[n], the least time of an entry when each document comes, in ms; None:
        any.
        """
        self._buckets = buckets
        self._known = known
        self._rules = rules
        self._sketches = sketches
        self._rows = rows
        self._first = buckets.keys(runs)
        self._oldest = oldest
        self._pairs: list[Pairs] = []
        count = len(rows)
        path = np.full((count, LEVELS + 1), _NONE, order="F")
        path[:, 0] = runs
        self._ends = Ends(
            path=path,
            level=np.full(count, _NONE),
            into=np.full(count, _NONE),
            standing=np.full(count, _NONE),
            covered=np.zeros(count, np.bool_),
            dropped=np.zeros(count, np.bool_),
            missed=np.zeros(count, np.bool_),
            contents=[],
            pairs=Pairs.joined([]),
        )

    def ends(self) -> Ends:
        """Go the way.

        Raises RecordMissing if a bucket names a document that has no record.
        """
        ends, cells = self._ends, np.arange(len(self._rows))
        finer = np.empty((0, LEVELS), np.int64)
        for level in range(LEVELS + 1):
            numbers = ends.path[:, level].take(cells)
            crowded = self._buckets.sizes.take(numbers) >= self._rules.heads
            left = np.ones(len(cells), np.bool_)
            left[crowded] = ~self._stopped(cells[crowded], level)
            cells = cells[left]
            cells = cells[self._passed(cells, level)]
            if not len(cells):
                break
            if level == 0:
                finer = np.full((len(self._rows), LEVELS), _NONE)
            if level in _READ_TOGETHER:
                levels = _READ_TOGETHER[level]
                finer[cells, levels.start : levels.stop] = self._finer(cells, levels)
            ends.path[cells, level + 1] = finer[cells, level]
        ends.pairs = Pairs.joined(self._pairs)
        goes_in = ends.standing < 0
        ends.level[goes_in] = ends.into[goes_in]
        return ends

    def _stopped(self, cells: NDArray[np.int64], level: int) -> NDArray[np.bool_]:
        """Return in which crowded buckets one of the first entries stands for the document.

        Where some of these aren't live, it is left to `_passed`.
        """
        stopped = np.zeros(len(cells), np.bool_)
        left = self._with_live_heads(cells, level)
        met, begin = [], 0
        while len(left) and begin < self._rules.heads:
            # Mostly one of the first two stands, and the records of the others needn't be read.
            few = begin and len(left) <= _FEW
            end = self._rules.heads if few else min(self._rules.heads, 2 * begin or 1)
            pairs = self._compared(*self._entries(cells[left], level, begin, end))
            covers = pairs.alike.reshape(len(left), -1) >= self._rules.covers
            found, first = _first_in_rows(covers)
            self._stand(level, pairs.take(found * (end - begin) + first[found]))
            if end - begin > 1:
                pairs = pairs.take((np.arange(end - begin) <= first[:, None]).reshape(-1))
            met.append(pairs)
            stopped[left[found]] = True
            left, begin = left[first == end - begin], end
        ended = np.zeros(len(self._rows), np.bool_)
        ended[cells[stopped]] = True
        self._pairs += [pairs.take(ended[pairs.of]) for pairs in met]
        return stopped

    def _entries(
        self, cells: NDArray[np.int64], level: int, begin: int, end: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return some of the first entries of crowded buckets: int64[e] each, cells and places."""
        numbers = self._ends.path[:, level].take(cells)
        places = self._buckets.heads(numbers, begin, end)
        return np.repeat(cells, end - begin), places

    def _with_live_heads(self, cells: NDArray[np.int64], level: int) -> NDArray[np.int64]:
        """Return in which crowded buckets all of the first entries are live: int64[k]."""
        heads = self._rules.heads
        if not len(cells) or (self._oldest is None and self._known.all_kept):
            return np.arange(len(cells))
        live = self._live(*self._entries(cells, level, 0, heads))
        if live is None:
            return np.arange(len(cells))
        return np.flatnonzero(live.reshape(-1, heads).all(axis=1))

    def _live(
        self, cells: NDArray[np.int64], places: NDArray[np.int64]
    ) -> NDArray[np.bool_] | None:
        rows = self._rows[cells]
        oldest = None if self._oldest is None else self._oldest[rows]
        return self._known.live(places, self._first.columns[cells], rows, oldest)

    def _compared(self, cells: NDArray[np.int64], places: NDArray[np.int64]) -> Pairs:
        """Compare the documents of cells with entries: int64[e] each."""
        own, others, rows = self._sketches, self._known.sketches, self._rows[cells]
        found = [
            pairwise_similarity(own.take(rows[some], axis=0), others.take(places[some], axis=0))
            for start in range(0, len(rows), _PAIRS_AT_ONCE)
            for some in [slice(start, start + _PAIRS_AT_ONCE)]
        ]
        return Pairs(cells, places, np.concatenate([np.empty(0), *found]))

    def _stand(self, level: int, pairs: Pairs) -> None:
        """Have entries stand for the documents of cells."""
        self._ends.level[pairs.of] = level
        self._ends.standing[pairs.of] = pairs.places
        self._ends.covered[pairs.of] = pairs.alike < self._rules.absorb

    def _passed(self, cells: NDArray[np.int64], level: int) -> NDArray[np.bool_]:
        """Compare documents with all entries of their buckets; return which go on to finer ones."""
        ends, rules = self._ends, self._rules
        numbers = ends.path[:, level].take(cells)
        sizes, places = self._buckets.entries(numbers)
        at = np.repeat(np.arange(len(cells)), sizes)
        live = self._live(cells[at], places)
        if live is not None:
            places, at = places[live], at[live]
            less = np.bincount(at, minlength=len(cells))
            ends.missed[cells] |= less < sizes
            sizes = less
        pairs = self._compared(cells[at], places)
        starts = np.cumsum(sizes) - sizes
        full = sizes >= rules.capacity
        best, best_at = _best(pairs.alike, sizes)
        stands = best >= np.where(full, rules.covers, rules.absorb)
        crowded = np.flatnonzero(sizes >= rules.heads)
        early = spread(starts[crowded], np.full(len(crowded), rules.heads))
        covers = pairs.alike[early].reshape(-1, rules.heads) >= rules.covers
        found = covers.any(axis=1)
        by_head, first = crowded[found], covers.argmax(axis=1)[found]
        best_at[by_head] = starts[by_head] + first
        stands[by_head] = True
        seen = np.ones(len(places), np.bool_)
        seen[spread(best_at[by_head] + 1, sizes[by_head] - first - 1)] = False
        self._pairs.append(pairs.take(seen))
        self._stand(level, pairs.take(best_at[stands]))
        return self._not_standing(level, cells, stands, Content(cells, sizes, places))

    def _not_standing(
        self, level: int, cells: NDArray[np.int64], stands: NDArray[np.bool_], content: Content
    ) -> NDArray[np.bool_]:
        """Note which buckets take the documents for which no entry stands; return who goes on.

        What a bucket had before is in the finer ones, even if it has room by now. So a document
        goes on to these, but is inserted into the first bucket on its way with room.
        """
        ends, sizes = self._ends, content.sizes
        full = sizes >= self._rules.capacity
        on = ~stands & (full | self._buckets.beyond[ends.path[cells, level]])
        last = level == LEVELS
        takes = ~stands & (ends.into[cells] < 0) & (~full | last)
        ends.into[cells[takes]] = level
        ends.dropped[cells[takes & full]] = True
        skipped = np.where(full, sizes - self._rules.capacity + 1, 0)[takes]
        starts, left = (np.cumsum(sizes) - sizes)[takes] + skipped, sizes[takes] - skipped
        kept = content.places[spread(starts, left)]
        ends.contents.append((level, Content(cells[takes], left, kept)))
        return np.zeros(len(cells), np.bool_) if last else on

    def _finer(self, cells: NDArray[np.int64], levels: range) -> NDArray[np.int64]:
        """Return the numbers of the finer buckets that documents may go on to: int64[k, levels].

        levels: those from which they go on.
        """
        columns, hashes = self._first.take(cells)
        sketches = self._sketches.take(self._rows[cells], axis=0)
        keys = [finer_keys(columns, hashes, level + 1, sketches) for level in levels]
        some = BucketKeys(np.tile(columns, len(levels)), np.concatenate(keys))
        return self._buckets.finer(some).reshape(len(levels), -1).T


def _first_in_rows(
    covers: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which rows have something, int64[m], and where it is first; the width if nowhere.

    covers: bool[n, width]. Returns also int64[n].
    """
    width = covers.shape[1]
    if width == 1:  # A reduction along so short rows takes longer than all else.
        first = (~covers[:, 0]).astype(np.int64)
    else:
        first = np.where(covers.any(axis=1), covers.argmax(axis=1), width)
    return np.flatnonzero(first < width), first


def _best(
    alike: NDArray[np.float64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the greatest of each part, and where it is first reached; -1 and 0 of an empty one."""
    best, at = np.full(len(sizes), -1.0), np.zeros(len(sizes), np.int64)
    filled = np.flatnonzero(sizes)
    if len(filled):
        starts = np.cumsum(sizes) - sizes
        best[filled] = np.maximum.reduceat(alike, starts[filled])
        parts = np.repeat(np.arange(len(sizes)), sizes)
        reached = np.flatnonzero(alike == best[parts])[::-1]
        at[parts[reached]] = reached
    return best, at
