"""Judges at once the documents of a batch that meet no other document of it.

They are most of those that find anything. No other document of the batch has one of the buckets
that they come to, and these have room. So their order doesn't matter, and no finer buckets are
concerned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.exact import without_repeats
from lsh.index.buckets import spread
from lsh.index.layout import BEYOND
from lsh.index.match import best_matches
from lsh.index.shares import sufficient
from lsh.sketch import pairwise_similarity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.batch import DocumentBatch, Match
    from lsh.index.buckets import Buckets
    from lsh.index.cells import Cells
    from lsh.index.layout import Bucket
    from lsh.index.match import Known
    from lsh.index.rules import BucketRules

__all__ = ["Apart", "Renewal", "Verdicts", "divided", "judged"]

_PAIRS_AT_ONCE = 1 << 12
"""Sketches that are compared at a time, so that memory is bounded and the arrays stay in cache."""


class Apart(NamedTuple):
    """The cells of documents that meet no other one.

    rows: int64[c], the document of each, ascending. runs: int64[c], the run of each; see `Cells`.
    """

    rows: NDArray[np.int64]
    runs: NDArray[np.int64]


class _Pairs(NamedTuple):
    """Documents and the candidates that each was compared with.

    rows: int64[p], ascending. numbers: int64[p], of the candidates. alike: float64[p], the
    estimated similarities.
    """

    rows: NDArray[np.int64]
    numbers: NDArray[np.int64]
    alike: NDArray[np.float64]


class Renewal(NamedTuple):
    """A renewal: the bucket of the run ``run`` has an entry that stands for a document."""

    run: int
    entry: int
    row: int


@dataclass(slots=True)
class Verdicts:
    """The verdicts on documents that meet no other one.

    matches: as in a decision. inserted: int64[k], the rows of those that are inserted into some
    bucket. buckets: the content of the buckets that have changed, and of those in which an entry is
    renewed, by run. changed: the runs of the former. candidates, absorbed: as in a decision.
    """

    matches: dict[int, list[Match]]
    inserted: NDArray[np.int64]
    buckets: dict[int, Bucket]
    changed: list[int]
    renewed: list[Renewal]
    candidates: int
    absorbed: int


def divided(
    cells: Cells, found: Buckets, runs: NDArray[np.int64], capacity: int, rows: NDArray[np.bool_]
) -> tuple[Apart, NDArray[np.int64]]:
    """Divide the documents with cells in some runs: those that meet no other one, and the others.

    found: the buckets that exist, by run. runs: int64[k], ascending; all of ``found``, and all
    that several documents share. rows: bool[n], which documents may be judged out of order.

    Returns the cells of the former, and the runs of the latter: int64[m], ascending.
    """
    shared = cells.sizes > 1
    crowded = found.sizes >= capacity
    crowded |= found.entries[found.starts + found.sizes - 1] == BEYOND
    shared[found.places[crowded]] = True
    its_rows, its_runs = cells.pairs(runs)
    apart = rows.copy()
    apart[its_rows[shared[its_runs]]] = False
    is_apart = apart[its_rows]
    others = without_repeats(its_runs[~is_apart])
    return Apart(its_rows[is_apart], its_runs[is_apart]), others


class _Entries(NamedTuple):
    """The entries of the buckets that documents come to.

    cells: int64[e], the cell of each. which: int64[e], its document, an index into ``numbers``,
    int64[u]. times: int64[e], ms.
    """

    cells: NDArray[np.int64]
    which: NDArray[np.int64]
    numbers: NDArray[np.int64]
    times: NDArray[np.int64]

    def take(self, kept: NDArray[np.bool_]) -> _Entries:
        return _Entries(self.cells[kept], self.which[kept], self.numbers, self.times[kept])


def judged(  # noqa: PLR0913 -- what a verdict depends on
    batch: DocumentBatch,
    apart: Apart,
    cells: Cells,
    found: Buckets,
    *,
    known: Known,
    rules: BucketRules,
    first: int,
    oldest: NDArray[np.int64] | None,
) -> Verdicts:
    """Judge documents that meet no other one.

    known: has all documents in their buckets. first: the number of the batch's first row. oldest:
    int64[n], the least time of an entry when each document comes, in ms; None: any.
    """
    columns = cells.keys.columns[apart.runs]
    entries = _entries(apart, columns, found, known, dated=oldest is not None)
    live = ~np.isin(entries.numbers, list(known.forgotten))[entries.which]
    if oldest is not None:
        live &= entries.times >= oldest[apart.rows[entries.cells]]
    entries = entries.take(live)
    pairs, pair_of = np.unique(
        apart.rows[entries.cells] * len(entries.numbers) + entries.which, return_inverse=True
    )
    rows, which = np.divmod(pairs, max(1, len(entries.numbers)))
    alike = _similarities(batch, rows, entries.numbers, which, known)
    sizes = np.bincount(entries.cells, minlength=len(apart.rows))
    starts = np.cumsum(sizes) - sizes
    best, best_at = _best(alike[pair_of], entries.cells, sizes, starts)
    absorbed = best >= rules.absorb
    renewed = np.zeros(len(absorbed), bool)
    if oldest is not None:
        stands = np.flatnonzero(absorbed)
        renewed[stands] = batch.times[apart.rows[stands]] > entries.times[best_at[stands]]
    numbers = entries.numbers[entries.which]
    buckets = _buckets(apart, numbers, starts, sizes, ~absorbed | renewed)
    for row, run in _cells_where(apart, ~absorbed):
        buckets[run].append(first + row)
    entry_of = numbers[best_at[renewed]].tolist()
    return Verdicts(
        matches=_matches(batch, _Pairs(rows, entries.numbers[which], alike), known, rules),
        inserted=without_repeats(apart.rows[~absorbed]),
        buckets=buckets,
        changed=apart.runs[~absorbed].tolist(),
        renewed=[
            Renewal(run, entry, row)
            for (row, run), entry in zip(_cells_where(apart, renewed), entry_of, strict=True)
        ],
        candidates=len(pairs),
        absorbed=int(np.count_nonzero(absorbed)),
    )


def _entries(
    apart: Apart, columns: NDArray[np.uint8], found: Buckets, known: Known, *, dated: bool
) -> _Entries:
    at = np.searchsorted(found.places, apart.runs)
    sizes = found.sizes[at]
    numbers, which = np.unique(found.entries[spread(found.starts[at], sizes)], return_inverse=True)
    cells = np.repeat(np.arange(len(at)), sizes)
    if not dated:
        return _Entries(cells, which, numbers, which)
    own = {n: 0 if n in known.forgotten else known.record(n).time for n in numbers.tolist()}
    times = np.array(list(own.values()), np.int64)[which]
    renewed = np.flatnonzero(np.isin(numbers, list(known.renewals))[which])
    of_them = zip(numbers[which[renewed]].tolist(), columns[cells[renewed]].tolist(), strict=True)
    times[renewed] = [known.renewals[n].get(c, own[n]) for n, c in of_them]
    return _Entries(cells, which, numbers, times)


def _similarities(
    batch: DocumentBatch,
    rows: NDArray[np.int64],
    numbers: NDArray[np.int64],
    which: NDArray[np.int64],
    known: Known,
) -> NDArray[np.float64]:
    """Return the estimated similarity of documents of the batch to others, pair by pair."""
    slots = batch.sketches.shape[1]
    packed = b"".join(known.sketches.get(number, bytes(slots)) for number in numbers.tolist())
    others = np.frombuffer(packed, np.uint8).reshape(len(numbers), slots)
    found = [
        pairwise_similarity(batch.sketches[rows[some]], others[which[some]])
        for start in range(0, len(rows), _PAIRS_AT_ONCE)
        for some in [slice(start, start + _PAIRS_AT_ONCE)]
    ]
    return np.concatenate([np.empty(0), *found])


def _best(
    alike: NDArray[np.float64],
    cells: NDArray[np.int64],
    sizes: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the greatest similarity in each cell's bucket, and where it is first reached.

    In an empty bucket, that is -1, and nowhere.
    """
    best, at = np.full(len(sizes), -1.0), np.zeros(len(sizes), np.int64)
    filled = np.flatnonzero(sizes)
    if len(filled):
        best[filled] = np.maximum.reduceat(alike, starts[filled])
        reached = np.flatnonzero(alike == best[cells])
        at[cells[reached[::-1]]] = reached[::-1]
    return best, at


def _buckets(
    apart: Apart,
    numbers: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    wanted: NDArray[np.bool_],
) -> dict[int, Bucket]:
    """Return the live entries of the buckets of some cells, by run."""
    listed = numbers.tolist()
    ends = (starts + sizes)[wanted].tolist()
    cuts = zip(apart.runs[wanted].tolist(), starts[wanted].tolist(), ends, strict=True)
    return {run: listed[start:end] for run, start, end in cuts}


def _cells_where(apart: Apart, which: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the row and the run of some cells."""
    return list(zip(apart.rows[which].tolist(), apart.runs[which].tolist(), strict=True))


def _matches(
    batch: DocumentBatch, pairs: _Pairs, known: Known, rules: BucketRules
) -> dict[int, list[Match]]:
    """Return the best matches of each document that has any, by row."""
    enough = pairs.alike >= rules.threshold
    shares = _shares(batch, pairs, known, rules)
    similar: dict[int, dict[int, float]] = {}
    containing: dict[int, dict[int, float]] = {}
    enough |= shares > 0.0
    for row, number, estimate, share in zip(
        *(part[enough].tolist() for part in (*pairs, shares)), strict=True
    ):
        similar.setdefault(row, {})[number] = estimate
        if share:
            containing.setdefault(row, {})[number] = share
    return {
        row: best_matches(some, containing.get(row, {}), known, rules)
        for row, some in similar.items()
    }


def _shares(
    batch: DocumentBatch, pairs: _Pairs, known: Known, rules: BucketRules
) -> NDArray[np.float64]:
    """Return the estimated share of each document in its candidate; 0 if it isn't enough."""
    if rules.containment is None:
        return np.zeros(len(pairs.rows))
    sizes = np.array([known.record(number).shingles for number in pairs.numbers.tolist()], np.int64)
    slots = batch.sketches.shape[1]
    return sufficient(pairs.alike, batch.shingles[pairs.rows], sizes, slots, rules)
