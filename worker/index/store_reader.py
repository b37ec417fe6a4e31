"""Reads a shard from its store: what stays in memory, and what queries need."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from rocksdict import Rdict

from lsh._core import Damaged, Matches, Opening, Shard
from lsh.index import BucketRules, DocumentBatch, Match
from worker.index.errors import StoreDamaged
from worker.index.keyspace import Range
from worker.index.rocksdb import span
from worker.index.run_tables import Pages
from worker.stages.answers import listed

_AT_ONCE = 64
"""Parts of filters that are given to the core at a time."""


def read(
    opening: Opening,
    db: Rdict,
    on_cells: Callable[[int, int], None] = lambda _count, _total: None,
) -> Shard:
    """Read what a shard keeps in memory.

    ``on_cells`` is called with how many cells a filter is of that was read, and those of all.

    Raises:
        ReadingEnded: not everything can be read.
        ValueError: something isn't as it was written.
    """
    ranges = opening.ranges()
    total = sum(cells for _, _, cells in ranges)
    for low, high, cells in ranges:
        pairs: list[tuple[bytes, bytes]] = []
        for pair in span(db, Range(low, high)):
            pairs.append(pair)
            if len(pairs) == _AT_ONCE:
                opening.take(pairs)
                pairs.clear()
        opening.take(pairs)
        on_cells(cells, total)
    return opening.finish()


def matches_of(found: Matches) -> list[list[Match]]:
    """Return the matches of each document of a batch, best first."""
    every = listed(found)
    return [every[low:high] for low, high in pairwise(found.starts.tolist())]


class MetBucket(NamedTuple):
    """A bucket that a query met.

    column: that of its key. level: 0 for the bucket of the key; from 1 for overflow buckets.
    size: how many live entries it has. holds: the sequence numbers of the matches in it.
    """

    column: int
    level: int
    size: int
    holds: list[int]


class ShardAnswer(NamedTuple):
    """A shard's answer to a query: its matches, the buckets that it met, its comparisons."""

    matches: list[Match]
    met: list[MetBucket]
    compared: int


class StoreReader:
    """Answers queries from a shard. Let nobody write meanwhile. Several may ask at once."""

    def __init__(self, path: Path, shard: Shard, pages: Pages) -> None:
        """Take the shard of the store at a path, and what reads pages of the store."""
        self._path = path
        self._shard = shard
        self._pages = pages

    def query(self, batch: DocumentBatch, rules: BucketRules) -> list[ShardAnswer]:
        """Return what each document would match if it came next, alone.

        Raises:
            StoreDamaged: the store isn't as it was written.
            OSError: it can't be read.
        """
        try:
            query = self._shard.query(batch, rules)
            self._pages.look_up(query)
            matches, met, compared = query.answers()
        except Damaged as error:
            raise StoreDamaged(f"{self._path}: {error}") from error
        buckets = [[MetBucket(*one) for one in some] for some in met]
        return list(map(ShardAnswer, matches_of(matches), buckets, compared))
