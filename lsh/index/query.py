"""Queries: find the documents that a text would match, and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.index.buckets import Buckets
from lsh.index.cells import cells_of
from lsh.index.clock import NO_TIME
from lsh.index.growing import GrowingBuckets
from lsh.index.known import Known
from lsh.index.matched import matched, once
from lsh.index.walk import Walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lsh.index.batch import Match
    from lsh.index.buckets import BucketReader
    from lsh.index.rules import BucketRules

__all__ = ["Answer", "MetBucket", "match", "query"]


class MetBucket(NamedTuple):
    """A bucket that a query met.

    column: of its key.
    level: 0 for the bucket of the key; from 1 for finer ones, see `lsh.index.finer`.
    size: how many entries it has that are neither forgotten nor too old.
    holds: the sequence numbers of the matches that are in it, ascending.
    """

    column: int
    level: int
    size: int
    holds: tuple[int, ...]


class Answer(NamedTuple):
    """What an index has for one query.

    matches: the documents that it matches, best first.
    met: the buckets in which there was something, by column, the coarsest first.
    compared: how many documents it was compared with.
    """

    matches: list[Match]
    met: list[MetBucket]
    compared: int


def query(  # noqa: PLR0913 -- what a document has, and what it is judged by
    reader: BucketReader,
    columns: Sequence[int],
    keys: NDArray[np.uint64],
    sketches: NDArray[np.uint8],
    rules: BucketRules,
    *,
    times: NDArray[np.int64] | None = None,
    sizes: NDArray[np.uint32] | None = None,
) -> list[Answer]:
    """Return for each of n queries what a document like it would match; change nothing.

    Each query is answered as if it came alone. With the rules' window, entries that would be too
    old once it came don't answer; see `lsh.index.clock`.

    columns: c numbers of columns.
    keys: uint64[c, n], the queries' keys in each column.
    sketches: uint8[n, slots], the queries' sketches.
    times: int64[n], the time of each query's document, in ms, or `NO_TIME`; None: none has one.
    sizes: uint32[n], the number of the different shingles of each query. Rules with a containment
        need it.

    Raises ValueError if they need it and it is None, and RecordMissing if a bucket names a document
    that has no record.
    """
    count = keys.shape[1]
    if rules.containment is not None and sizes is None:
        raise ValueError("sizes: got None, rules with a containment take the queries' sizes")
    answers = [Answer([], [], 0) for _ in range(count)]
    if not keys.size:
        return answers
    cells = cells_of(columns, keys)
    found = Buckets.of(reader.buckets(cells.keys))
    if not len(found):
        return answers
    oldest = None
    if rules.window_ms is not None:
        own = np.full(count, NO_TIME) if times is None else times
        oldest = reader.clock.oldest_alone(own, rules)
    known = Known(reader, sketches.shape[1], reader.clock)
    buckets = GrowingBuckets(reader, cells, found, known)
    rows, runs = cells.pairs(found.places)
    ends = Walk(buckets, known, rules, sketches, rows, runs, oldest).ends()
    shingles = np.zeros(count, np.uint32) if sizes is None else sizes
    pairs = once(ends.pairs._replace(of=rows[ends.pairs.of]), sketches.shape[1])
    best, compared = matched(pairs, shingles, known, rules), np.bincount(pairs.of, minlength=count)
    met = _met(rows, ends.path, buckets, known, oldest)
    for row, some in enumerate(met):
        matches = best.get(row, [])
        answers[row] = Answer(matches, _described(some, matches), int(compared[row]))
    return answers


class _Visit(NamedTuple):
    """A bucket on a query's way, and the sequence numbers of its live entries."""

    column: int
    level: int
    sequences: list[int]
    divided: bool


def _met(
    rows: NDArray[np.int64],
    path: NDArray[np.int64],
    buckets: GrowingBuckets,
    known: Known,
    oldest: NDArray[np.int64] | None,
) -> list[list[_Visit]]:
    """Return the buckets on the way of each query, by column, the coarsest first."""
    at, level = np.nonzero(path >= 0)
    numbers, of = path[at, level], rows[at]
    sizes, places = buckets.entries(numbers)
    columns = buckets.keys(numbers).columns
    visits = np.repeat(np.arange(len(numbers)), sizes)
    least = None if oldest is None else oldest[of[visits]]
    live = known.live(places, columns[visits], 0, least)
    if live is not None:
        places, sizes = places[live], np.bincount(visits[live], minlength=len(numbers))
    sequences, ends = known.sequences[places].tolist(), np.cumsum(sizes).tolist()
    met: list[list[_Visit]] = [[] for _ in range(int(of.max(initial=-1)) + 1)]
    begin = 0
    for row, column, depth, end, divided in zip(
        of.tolist(),
        columns.tolist(),
        level.tolist(),
        ends,
        buckets.beyond[numbers].tolist(),
        strict=True,
    ):
        met[row].append(_Visit(column, depth, sequences[begin:end], divided))
        begin = end
    return met


def _described(visits: list[_Visit], best: list[Match]) -> list[MetBucket]:
    """Return the buckets that have entries, or finer buckets."""
    matches = {one.sequence for one in best}
    return [
        MetBucket(
            one.column,
            one.level,
            len(one.sequences),
            tuple(sorted(matches.intersection(one.sequences))),
        )
        for one in visits
        if one.sequences or one.divided
    ]


def match(  # noqa: PLR0913 -- as of `query`
    reader: BucketReader,
    columns: Sequence[int],
    keys: NDArray[np.uint64],
    sketches: NDArray[np.uint8],
    rules: BucketRules,
    *,
    sizes: NDArray[np.uint32] | None = None,
) -> dict[int, list[Match]]:
    """Return the matches alone of n queries; see `query`.

    Returns the matches of each query that has any, best first, by number of the query.

    Raises as `query` does.
    """
    answers = query(reader, columns, keys, sketches, rules, sizes=sizes)
    return {row: answer.matches for row, answer in enumerate(answers) if answer.matches}
