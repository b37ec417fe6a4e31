"""Queries: find the documents that a text would match, and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.index.buckets import Buckets
from lsh.index.cells import cells_of
from lsh.index.chains import Chains
from lsh.index.layout import BEYOND
from lsh.index.match import best_matches

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
    level: 0 for the bucket of the key; from 1 for finer ones, see `lsh.index.chains`.
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

    Each query is answered as if it came alone. With the rules' window, entries that are too old
    by its time, or by the latest time of a document so far, don't answer.

    columns: c numbers of columns.
    keys: uint64[c, n], the queries' keys in each column.
    sketches: uint8[n, slots], the queries' sketches.
    times: int64[n], when each query comes, in ms; None: at the latest time of a document so far.
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
    contents = found.at(np.arange(len(found)))
    chains = Chains(reader, cells, sketches, contents, rules)
    nows = np.full(count, reader.now) if times is None else np.maximum(times, reader.now)
    asked = cells.by_row(found.places)
    # What is too old leaves the buckets that are read, so the earliest query comes first.
    for row, runs in sorted(asked, key=lambda one: int(nows[one[0]])):
        oldest = None if rules.window_ms is None else int(nows[row]) - rules.window_ms
        met = [
            (chains.column(run), level, chains.contents[number])
            for run in runs
            for level, number in enumerate(chains.of(row, run, oldest))
        ]
        similar = chains.known.similar(sketches[row], [bucket for _, _, bucket in met])
        size = 0 if sizes is None else int(sizes[row])
        containing = chains.known.containing(size, similar, rules)
        best = best_matches(similar, containing, chains.known, rules)
        answers[row] = Answer(best, _described(met, chains, best), len(similar))
    return answers


def _described(
    met: list[tuple[int, int, list[int]]], chains: Chains, best: list[Match]
) -> list[MetBucket]:
    """Return the buckets that have entries, or finer buckets."""
    matched = {one.sequence for one in best}
    described = []
    for column, level, bucket in met:
        entries = [number for number in bucket if number != BEYOND]
        sequences = {chains.known.record(number).sequence for number in entries}
        if bucket:
            holds = tuple(sorted(matched & sequences))
            described.append(MetBucket(column, level, len(entries), holds))
    return described


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
