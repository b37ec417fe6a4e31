"""Judges documents at once that don't depend on each other.

A document depends on the earlier ones of its batch that have one of its buckets, and on no others.
So the first round are all documents that meet no earlier one. In the next one are those that have
only met documents of the first, and so on. On most feeds, two or three rounds are enough for nearly
all documents that find anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.index.batch import Match
from lsh.index.buckets import spread
from lsh.index.layout import BEYOND
from lsh.index.match import best_of
from lsh.index.shares import sufficient
from lsh.sketch import pairwise_similarity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from lsh.index.batch import DocumentBatch
    from lsh.index.cells import Cells
    from lsh.index.growing import Met
    from lsh.index.match import Known
    from lsh.index.rules import BucketRules

__all__ = ["Apart", "Verdicts", "judged", "rounds"]

FEWEST = 8
"""Documents of a round. To judge fewer at once takes longer than to judge them one by one."""
_PAIRS_AT_ONCE = 1 << 12
"""Sketches that are compared at a time, so that memory is bounded and the arrays stay in cache."""


class Apart(NamedTuple):
    """The cells of documents that don't depend on each other.

    rows: int64[c], the document of each, ascending. runs: int64[c], the run of each; see `Cells`.
    """

    rows: NDArray[np.int64]
    runs: NDArray[np.int64]

    def take(self, which: NDArray[np.bool_]) -> Apart:
        """Return some of the cells."""
        return Apart(self.rows[which], self.runs[which])


@dataclass(slots=True)
class Verdicts:
    """The verdicts on documents that don't depend on each other, which have c cells.

    matches: as in a decision. met: the live entries of the cells. alike: float64[e], how similar
    each is to the document. absorbed: bool[c], the cells in which an entry stands for the document.
    standing: int64[c], the most similar entry; in an empty bucket, any number. renewed: bool[c],
    whether it is renewed. candidates: as in a decision.
    """

    matches: dict[int, list[Match]]
    met: Met
    alike: NDArray[np.float64]
    absorbed: NDArray[np.bool_]
    standing: NDArray[np.int64]
    renewed: NDArray[np.bool_]
    candidates: int

    def similar(self, cells: Iterable[int]) -> Iterator[dict[int, float]]:
        """Return for each of some cells how similar its entries are to the document."""
        starts = self.met.starts
        for cell in cells:
            here = slice(starts[cell], starts[cell] + self.met.sizes[cell])
            entries, alike = self.met.entries[here].tolist(), self.alike[here].tolist()
            yield dict(zip(entries, alike, strict=True))


def rounds(
    cells: Cells, left: Apart, any_order: NDArray[np.bool_]
) -> Iterator[tuple[Apart, Apart]]:
    """Divide documents into rounds: each depends on documents of earlier rounds only.

    left: the cells of the documents, of all runs that several documents share. any_order: bool[n],
    which documents may be judged before earlier ones that they don't depend on.

    Returns for each round its cells, and the cells that are left after it.
    """
    shared = np.flatnonzero(cells.sizes > 1)
    sizes = cells.sizes[shared]
    rows = cells.rows[spread(cells.starts[shared], sizes)]
    follows = np.ones(len(rows), bool)
    follows[np.cumsum(sizes) - sizes] = False
    later = np.flatnonzero(follows)
    before, after = rows[later - 1], rows[later]
    waiting = np.zeros(len(any_order), bool)
    waiting[left.rows] = True
    while True:
        ready = waiting & any_order
        ready[after[waiting[before]]] = False
        if np.count_nonzero(ready) < FEWEST:
            return
        now = ready[left.rows]
        one, left = left.take(now), left.take(~now)
        yield one, left
        waiting &= ~ready


def judged(  # noqa: PLR0913 -- what a verdict depends on
    batch: DocumentBatch,
    apart: Apart,
    columns: NDArray[np.uint8],
    met: Met,
    *,
    known: Known,
    rules: BucketRules,
    oldest: NDArray[np.int64] | None,
) -> Verdicts:
    """Judge documents that don't depend on each other.

    columns: uint8[c], the columns of the cells. known: has all documents that are met. oldest:
    int64[n], the least time of an entry when each document comes, in ms; None: any.
    """
    if known.forgotten:
        met = met.take(~np.isin(met.entries, list(known.forgotten)))
    times = np.zeros(len(met.entries), np.int64)
    if oldest is not None:
        at = met.cells()
        times = _times(met.entries, columns[at], known)
        live = times >= oldest[apart.rows[at]]
        met, times = met.take(live), times[live]
    pairs, alike = _compared(batch, apart.rows[met.cells()], met.entries, known)
    best, best_at = _best(alike, met)
    absorbed = best >= rules.absorb
    renewed = np.zeros(len(absorbed), bool)
    if oldest is not None:
        stands = np.flatnonzero(absorbed)
        renewed[stands] = batch.times[apart.rows[stands]] > times[best_at[stands]]
    return Verdicts(
        matches=_matches(batch, pairs, known, rules),
        met=met,
        alike=alike,
        absorbed=absorbed,
        standing=np.append(met.entries, BEYOND)[best_at],
        renewed=renewed,
        candidates=len(pairs.rows),
    )


def _times(
    entries: NDArray[np.int64], columns: NDArray[np.uint8], known: Known
) -> NDArray[np.int64]:
    """Return the times of entries in columns, in ms: int64[e]."""
    numbers, which = np.unique(entries, return_inverse=True)
    listed = numbers.tolist()
    times = np.array([known.record(number).time for number in listed], np.int64)[which]
    renewed = np.array([number in known.renewals for number in listed], bool)[which]
    of_them = zip(entries[renewed].tolist(), columns[renewed].tolist(), strict=True)
    times[renewed] = [known.time(number, column) for number, column in of_them]
    return times


class _Pairs(NamedTuple):
    """Documents and the candidates that each was compared with.

    rows: int64[p], ascending. numbers: int64[p], of the candidates, ascending for each row. alike:
    float64[p], the estimated similarities.
    """

    rows: NDArray[np.int64]
    numbers: NDArray[np.int64]
    alike: NDArray[np.float64]


def _compared(
    batch: DocumentBatch, rows: NDArray[np.int64], entries: NDArray[np.int64], known: Known
) -> tuple[_Pairs, NDArray[np.float64]]:
    """Compare documents with entries of their buckets, each pair once.

    rows, entries: int64[e].

    Returns the pairs, and float64[e], the estimated similarities.
    """
    # An index has fewer than 2^32 documents at a time.
    lowest = entries.min(initial=0)
    joined, pair_of = np.unique((rows << 32) | (entries - lowest), return_inverse=True)
    pairs, numbers = joined >> 32, (joined & 0xFFFFFFFF) + lowest
    packed = b"".join(map(known.sketches.__getitem__, numbers.tolist()))
    others = np.frombuffer(packed, np.uint8).reshape(len(numbers), batch.sketches.shape[1])
    found = [
        pairwise_similarity(batch.sketches[pairs[some]], others[some])
        for start in range(0, len(pairs), _PAIRS_AT_ONCE)
        for some in [slice(start, start + _PAIRS_AT_ONCE)]
    ]
    alike = np.concatenate([np.empty(0), *found])
    return _Pairs(pairs, numbers, alike), alike[pair_of]


def _best(alike: NDArray[np.float64], met: Met) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the greatest similarity in each cell, and where it is first reached.

    In an empty one, that is -1, at the end.
    """
    best, at = np.full(len(met.sizes), -1.0), np.full(len(met.sizes), len(alike))
    filled = np.flatnonzero(met.sizes)
    if len(filled):
        best[filled] = np.maximum.reduceat(alike, met.starts[filled])
        cells = met.cells()
        reached = np.flatnonzero(alike == best[cells])[::-1]
        at[cells[reached]] = reached
    return best, at


def _matches(
    batch: DocumentBatch, pairs: _Pairs, known: Known, rules: BucketRules
) -> dict[int, list[Match]]:
    """Return the best matches of each document that has any, by row."""
    shares = _shares(batch, pairs, known, rules)
    enough = (pairs.alike >= rules.threshold) | (shares > 0.0)
    similar: dict[int, list[Match]] = {}
    for row, number, estimate, share in zip(
        *(part[enough].tolist() for part in (*pairs, shares)), strict=True
    ):
        record = known.record(number)
        match = Match(record.sequence, estimate, record.id, share or None)
        similar.setdefault(row, []).append(match)
    return {row: best_of(some, rules) for row, some in similar.items()}


def _shares(
    batch: DocumentBatch, pairs: _Pairs, known: Known, rules: BucketRules
) -> NDArray[np.float64]:
    """Return the estimated share of each document in its candidate; 0 if it isn't enough."""
    if rules.containment is None:
        return np.zeros(len(pairs.rows))
    sizes = np.array([known.record(one).shingles for one in pairs.numbers.tolist()], np.int64)
    slots = batch.sketches.shape[1]
    return sufficient(pairs.alike, batch.shingles[pairs.rows], sizes, slots, rules)
