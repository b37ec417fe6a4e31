"""Full buckets key their later entries more finely, so nothing has to leave them.

A bucket has room for ``capacity`` entries. A document that comes to a full one goes on to a finer
bucket: the same key, with some slots of its sketch. Documents that are much alike have most slots
in common, so they meet there; those that only share the bucket's key are divided. A finer bucket
that is full has finer ones, too. Only the finest drops its oldest entry.

So whoever fills a bucket can't make it forget what was there before. And what comes later shares
a finer bucket only with documents that are as alike to it as its copies are.

A bucket that has finer ones says so with a last entry, `BEYOND`, because its own entries may go
before theirs.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from lsh.index.layout import BEYOND, BucketKeys
from lsh.index.match import Known
from lsh.mixing import constants

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from lsh.index.buckets import BucketReader
    from lsh.index.cells import Cells
    from lsh.index.layout import Bucket
    from lsh.index.rules import BucketRules

__all__ = ["LEVELS", "Chains", "finer_key", "is_open"]

_SLOTS = (2, 4, 8, 16, 32)
"""Slots that choose a finer bucket, by level from 1."""
LEVELS = len(_SLOTS)


@lru_cache(maxsize=4096)
def _places(column: int, level: int, slots: int) -> NDArray[np.intp]:
    """Return the slots that choose a finer bucket; those of a level include the former's."""
    draws = constants(column + 1, slots)
    return np.argsort(draws, kind="stable")[: _SLOTS[level - 1]]


def finer_key(column: int, key: int, level: int, sketch: NDArray[np.uint8]) -> int:
    """Return the key of a document's finer bucket.

    column, key: of the bucket. level: from 1 to `LEVELS`. sketch: uint8[slots].
    """
    chosen = sketch[_places(column, level, len(sketch))].tobytes()
    digest = blake2b(key.to_bytes(8, "little") + chosen, digest_size=8, person=b"finer %d" % level)
    return int.from_bytes(digest.digest(), "little")


def is_open(bucket: Bucket, capacity: int) -> bool:
    """Return whether a bucket has room, and none of its documents went on."""
    return len(bucket) < capacity and (not bucket or bucket[-1] != BEYOND)


class Chains:
    """The buckets that a batch's documents come to.

    Those of the cells have the numbers of their runs; finer ones have numbers above. ``contents``
    are the buckets by number, as far as they are needed; ``known`` are the documents in them.
    """

    def __init__(  # noqa: PLR0913, PLR0917 -- what documents have, and what was read
        self,
        reader: BucketReader,
        cells: Cells,
        sketches: NDArray[np.uint8],
        contents: dict[int, Bucket],
        rules: BucketRules,
        known: Known | None = None,
    ) -> None:
        """Take the buckets of the cells that matter, and what is known; read the finer ones.

        Raises RecordMissing if a bucket names a document that has no record.
        """
        self._reader = reader
        self._sketches = sketches
        self._rules = rules
        self.contents = contents
        self._cells = cells.keys
        self._finer_columns: list[int] = []
        self._finer_hashes: list[int] = []
        changes = np.flatnonzero(np.diff(cells.keys.columns, prepend=-1))
        ordered = cells.keys.columns[changes].tolist()
        self._rank = {column: rank for rank, column in enumerate(ordered)}
        self._numbers: dict[tuple[int, int], int] = {}
        self.known = Known() if known is None else known
        self._read_on(cells)
        self.known.read(reader, contents.values(), rules.window_ms)

    def _read_on(self, cells: Cells) -> None:
        """Read the finer buckets that will be needed, level by level."""
        capacity, sizes = self._rules.capacity, cells.sizes
        # The documents of the batch itself may fill a bucket.
        full = [
            run
            for run, bucket in self.contents.items()
            if bucket and not is_open(bucket, max(1, capacity - int(sizes[run]) + 1))
        ]
        at = [
            (row, run, run)
            for run in full
            for row in cells.rows[cells.starts[run] : cells.starts[run] + sizes[run]].tolist()
        ]
        for level in range(1, LEVELS + 1):
            if not at:
                return
            at = [(row, run, self._finer(run, level, row)) for row, run, _ in at]
            self._load({number for _, _, number in at} - self.contents.keys())
            at = [one for one in at if not is_open(self.contents[one[2]], capacity)]

    def _finer(self, run: int, level: int, row: int) -> int:
        """Return the number of a document's finer bucket."""
        column, own = self.column(run), int(self._cells.hashes[run])
        key = finer_key(column, own, level, self._sketches[row])
        number = self._numbers.get((column, key))
        if number is None:
            number = len(self._cells.hashes) + len(self._finer_columns)
            self._numbers[column, key] = number
            self._finer_columns.append(column)
            self._finer_hashes.append(key)
        return number

    def _load(self, numbers: Iterable[int]) -> None:
        chosen = sorted(numbers)
        keys = self.keys(chosen)
        ranks = [self._rank[column] for column in keys.columns.tolist()]
        order = np.lexsort((keys.hashes, np.array(ranks, np.int64)))
        found = dict(self._reader.buckets(keys.take(order)))
        places = enumerate(order.tolist())
        self.contents |= {chosen[at]: found.get(place, []) for place, at in places}

    def keys(self, numbers: Sequence[int] | NDArray[np.int64]) -> BucketKeys:
        """Return the keys of buckets, by ascending numbers."""
        wanted = np.asarray(numbers, np.int64)
        first = int(np.searchsorted(wanted, len(self._cells.hashes)))
        own = self._cells.take(wanted[:first])
        finer = (wanted[first:] - len(self._cells.hashes)).tolist()
        columns = np.array([self._finer_columns[place] for place in finer], np.uint8)
        hashes = np.array([self._finer_hashes[place] for place in finer], np.uint64)
        return BucketKeys(
            np.concatenate((own.columns, columns)), np.concatenate((own.hashes, hashes))
        )

    def column(self, number: int) -> int:
        """Return the column of a bucket."""
        finer = number - len(self._cells.hashes)
        return int(self._cells.columns[number]) if finer < 0 else self._finer_columns[finer]

    def of(self, row: int, run: int, oldest: int | None) -> list[int]:
        """Return the buckets that a document comes to, from the coarsest.

        What is forgotten, or older than ``oldest`` (ms), is removed from them.

        Raises RecordMissing if a bucket names a document that has no record.
        """
        number, level, chain = run, 0, []
        while True:
            bucket = self.contents[number]
            if bucket and (oldest is not None or self.known.forgotten):
                bucket = self.known.live(bucket, self.column(number), oldest)
                self.contents[number] = bucket
            chain.append(number)
            if level == LEVELS or is_open(bucket, self._rules.capacity):
                return chain
            level += 1
            number = self._finer(run, level, row)
            if number not in self.contents:
                self._load([number])
                read = self.contents[number]
                self.known.read(self._reader, [read], self._rules.window_ms)
