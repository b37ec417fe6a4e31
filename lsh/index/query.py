"""Queries: find the documents that a text would match, and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.index.buckets import Buckets
from lsh.index.cells import cells_of
from lsh.index.chains import Chains
from lsh.index.match import best_matches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lsh.index.batch import Match
    from lsh.index.buckets import BucketReader
    from lsh.index.rules import BucketRules

__all__ = ["match"]


def match(
    reader: BucketReader,
    columns: Sequence[int],
    keys: NDArray[np.uint64],
    sketches: NDArray[np.uint8],
    rules: BucketRules,
) -> dict[int, list[Match]]:
    """Return the matches of n queries among the documents in the buckets; change nothing.

    columns: c numbers of columns.
    keys: uint64[c, n], the queries' keys in each column.
    sketches: uint8[n, slots], the queries' sketches.

    Returns the matches of each query that has any, best first, by number of the query.

    Raises RecordMissing if a bucket names a document that has no record.
    """
    if not keys.size:
        return {}
    cells = cells_of(columns, keys)
    found = Buckets.of(reader.buckets(cells.keys))
    contents = found.at(np.arange(len(found)))
    chains = Chains(reader, cells, sketches, contents, rules)
    oldest = None if rules.window_ms is None else reader.now - rules.window_ms
    matches = {}
    for row, runs in cells.by_row(found.places):
        numbers = [number for run in runs for number in chains.of(row, run, oldest)]
        buckets = [chains.contents[number] for number in numbers]
        similar = chains.known.similar(sketches[row], buckets)
        best = best_matches(similar, chains.known, rules)
        if best:
            matches[row] = best
    return matches
