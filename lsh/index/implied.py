"""Finds the buckets whose content follows from another one that was read.

The keys of a document's bands follow from its sketch. So the record of a candidate, found in one
bucket, says in which others it is too. If a bucket of the candidate was new when it came, and has
not grown since, it has no other document. To read such buckets costs most of what a copy or a near
variant costs, and they are up to as many as there are bands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.index.buckets import Buckets, spread
from lsh.ordered import last_of_each, without_repeats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lsh.index.buckets import BucketReader
    from lsh.index.cells import Cells
    from lsh.index.known import Known
    from lsh.index.rules import BucketRules

__all__ = ["read_buckets"]

_FEW = 4
"""Entries of a bucket from which others follow. A fuller one is that of a mould, whose documents
are in grown buckets mostly, and to look at all of them takes longer than to read."""


class _Cells(NamedTuple):
    """Cells whose buckets may exist: the rows of their documents, ascending, and their runs."""

    rows: NDArray[np.int64]
    runs: NDArray[np.int64]


class _Pairs(NamedTuple):
    """Documents and others that they share a bucket with.

    rows: int64[p]. numbers: int64[p], of the others. shared: bool[p, c], the columns in which the
    other one was the first in a bucket that both share.
    """

    rows: NDArray[np.int64]
    numbers: NDArray[np.int64]
    shared: NDArray[np.bool_]


def read_buckets(
    reader: BucketReader,
    columns: Sequence[int],
    cells: Cells,
    known: Known,
    rules: BucketRules,
) -> Buckets:
    """Return the buckets of cells that exist, by run; those that follow from others aren't read.

    columns: c numbers of columns, those of the cells. known: has the documents of the cells by row,
    and learns those in buckets that others follow from.

    Raises RecordMissing if a bucket names a document that has no record.
    """
    if not rules.rows or len(columns) == 1:
        return Buckets.of(reader.buckets(cells.keys))
    exist = reader.may_exist(cells.keys)
    possible = _Cells(*cells.pairs(np.flatnonzero(exist)))
    # The last one of a document: that of its exact text, if it may exist.
    one_each = without_repeats(possible.runs[last_of_each(possible.rows)])
    first = _read(reader, cells, one_each)
    pairs = _pairs(columns, known, *_met(reader, possible, first), rules)
    exist[one_each] = False
    runs, numbers = _following(columns, cells, possible, pairs)
    runs, numbers = runs[exist[runs]], numbers[exist[runs]]
    sole = reader.sole(cells.keys.take(runs)) if len(runs) else np.zeros(0, bool)
    others = Buckets(runs[sole], np.ones(int(sole.sum()), np.int64), numbers[sole])
    exist[others.places] = False
    return Buckets.joined([first, others, _read(reader, cells, np.flatnonzero(exist))])


def _read(reader: BucketReader, cells: Cells, runs: NDArray[np.int64]) -> Buckets:
    """Return the buckets of some runs, int64[k] ascending, by run."""
    if not len(runs):
        return Buckets.of({})
    found = Buckets.of(reader.buckets(cells.keys.take(runs)))
    return Buckets(runs[found.places], found.sizes, found.entries)


def _met(
    reader: BucketReader, possible: _Cells, first: Buckets
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the documents that came to buckets that were read first, and who is there: int64[m].

    A document that may have moved may not be in all of its buckets any more.
    """
    few = np.flatnonzero(first.sizes <= _FEW)
    if not len(few):
        return few, few
    at = np.minimum(np.searchsorted(first.places[few], possible.runs), len(few) - 1)
    here = np.flatnonzero(first.places[few][at] == possible.runs)
    of = few[at[here]]
    entries = first.entries[spread(first.starts[of], first.sizes[of])]
    rows = np.repeat(possible.rows[here], first.sizes[of])
    settled = entries >= reader.moved_below
    return rows[settled], entries[settled]


def _pairs(
    columns: Sequence[int],
    known: Known,
    rows: NDArray[np.int64],
    entries: NDArray[np.int64],
    rules: BucketRules,
) -> _Pairs:
    """Return documents, by row, with others that came to the same bucket: int64[m] each."""
    # What is forgotten, or says nothing, has zeros.
    places, bits = known.places(entries), -(-len(columns) // 8)
    if known.new.shape[1] != bits:
        return _Pairs(rows, entries, np.zeros((len(rows), len(columns)), np.bool_))
    new = np.unpackbits(
        known.new.take(places, axis=0), axis=1, count=len(columns), bitorder="little"
    ).astype(np.bool_)
    cut, shape = rules.bands * rules.rows, (len(rows), rules.bands, rules.rows)
    sketches = known.sketches
    same = sketches.take(rows, axis=0)[:, :cut] == sketches.take(places, axis=0)[:, :cut]
    in_band = same.reshape(shape).all(axis=2)
    shared = np.zeros((len(rows), len(columns)), bool)
    numbered = np.asarray(columns)
    of_bands = np.flatnonzero(numbered < rules.bands)
    shared[:, of_bands] = in_band[:, numbered[of_bands]]
    return _Pairs(rows, entries, shared & new)


def _following(
    columns: Sequence[int], cells: Cells, possible: _Cells, pairs: _Pairs
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the runs whose first document is known, ascending, and its number: int64[k] each."""
    known, ranks = np.unique(pairs.rows, return_inverse=True)
    holders = np.full((len(known) + 1, len(columns)), -1)
    pair, place = np.nonzero(pairs.shared)
    holders[ranks[pair], place] = pairs.numbers[pair]
    rank_of = np.full(1 + int(possible.rows.max(initial=0)), len(known))
    rank_of[known] = np.arange(len(known))
    place_of = np.zeros(256, np.int64)
    place_of[np.asarray(columns)] = np.arange(len(columns))
    numbers = holders[rank_of[possible.rows], place_of[cells.keys.columns[possible.runs]]]
    found = np.flatnonzero(numbers >= 0)[::-1]
    first = np.full(len(cells.sizes), -1)
    first[possible.runs[found]] = numbers[found]  # of the first document of several, the last here
    runs = np.flatnonzero(first >= 0)
    return runs, first[runs]
