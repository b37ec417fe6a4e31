"""Statistics of a shard's buckets: how many there are, how large they are, the largest ones."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worker.index.contents import Contents
from worker.index.errors import StoreDamaged
from worker.index.read_only import ReadOnlyStore, StoreFacts
from worker.index.spans import ReadingEnded


class LargeBucket(NamedTuple):
    """A bucket: its band (the last is the exact text), key, entries, and the id of the newest one.

    The id is None if that document was forgotten.
    """

    band: int
    key: int
    entries: int
    id: str | None


@dataclass(slots=True)
class Statistics:
    """What a store holds, as of its last flush.

    ``documents`` have records; ``facts.documents`` were judged. ``grown`` of the ``buckets`` have
    had more than one entry, and ``divided`` have been full and have finer ones, which are buckets,
    too. ``sizes`` is how many buckets have how many entries, by the greatest
    number of a class: 1, 2, 4 (3 and 4), 8 and so on. ``largest`` buckets come first. Entries of
    eras that are dropped don't count; those of documents that were forgotten do, until then.
    """

    facts: StoreFacts
    eras: int
    runs: int
    documents: int
    buckets: int = 0
    grown: int = 0
    divided: int = 0
    entries: int = 0
    sizes: Counter[int] = field(default_factory=Counter)
    largest: list[LargeBucket] = field(default_factory=list)

    @property
    def bytes_a_document(self) -> float:
        """Return the bytes on disk for each document that has a record; 0 if there is none."""
        return self.facts.size_bytes / self.documents if self.documents else 0.0


def store_statistics(path: Path, largest: int = 10) -> Statistics:
    """Read all buckets of a store; return statistics, with its ``largest`` buckets.

    Needs about 50 bytes of memory for each document, since it reads band by band.

    Raises:
        StoreDamaged: it can't be opened or read.
    """
    with ReadOnlyStore(path) as store:
        contents = store.contents()
        kept = contents.inserted - contents.first
        total = Statistics(store.facts(), len(contents.eras), len(contents.runs), kept)
        found: list[_Found] = []
        try:
            for band in contents.columns:
                buckets = _buckets(contents, band)
                _count(buckets, total)
                found = heapq.nsmallest(
                    largest,
                    [*found, *_largest(buckets, band, largest)],
                    key=lambda one: (-one.entries, one.band, one.key),
                )
            total.largest = [_named(contents, one) for one in found]
        except (ReadingEnded, ValueError) as error:
            raise StoreDamaged(f"{path}: {error}") from error
        return total


class _Buckets(NamedTuple):
    """The n buckets of a band: their keys uint64[n], ascending, their sizes and newest entries.

    Both are int64[n]. ``grown`` and ``divided``, bool[n], are as in `Statistics`.
    """

    hashes: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.int64]
    newest: npt.NDArray[np.int64]
    grown: npt.NDArray[np.bool_]
    divided: npt.NDArray[np.bool_]


class _Found(NamedTuple):
    """A large bucket before its newest document is looked up."""

    entries: int
    band: int
    key: int
    newest: int


def _buckets(contents: Contents, band: int) -> _Buckets:
    """Return the buckets of a band. Each is what was written last; see `Contents.buckets`."""
    hashes, newest = _cells(contents, band)
    sizes = (newest >= contents.first).astype(np.int64)
    grown, divided = np.zeros(len(hashes), np.bool_), np.zeros(len(hashes), np.bool_)
    firsts = np.array([first for _, first in contents.eras])
    written = np.searchsorted(firsts, newest, side="right") - 1
    places = {number: place for place, (number, _) in enumerate(contents.eras)}
    for one in contents.grown(band):
        key, (documents, beyond) = one.key[1], one.bucket
        at = int(np.searchsorted(hashes, np.uint64(key)))
        if at == len(hashes) or hashes[at] != key:
            raise ValueError(f"bucket {key:016x} of band {band} has grown, and has no cell")
        if written[at] <= places.get(one.era, -1):
            kept = [number for number in documents if number >= contents.first]
            sizes[at], newest[at] = len(kept), max(kept, default=-1)
            grown[at], divided[at] = True, beyond
    there = sizes > 0
    return _Buckets(hashes[there], sizes[there], newest[there], grown[there], divided[there])


def _cells(contents: Contents, band: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return the keys of a band's cells, ascending, and the newest document of each."""
    pages = [(page.keys, page.documents) for page in contents.cells(band)]
    hashes = np.concatenate([np.empty(0, np.uint64), *(keys for keys, _ in pages)])
    numbers = np.concatenate([np.empty(0, np.int64), *(documents for _, documents in pages)])
    order = np.lexsort((numbers, hashes))
    hashes, numbers = hashes[order], numbers[order]
    last = np.ones(len(hashes), np.bool_)
    last[:-1] = hashes[1:] != hashes[:-1]
    return hashes[last], numbers[last]


def _named(contents: Contents, one: _Found) -> LargeBucket:
    """Look up the newest document of a bucket."""
    record = contents.record(one.newest)
    named = None if record is None else record.id.decode(errors="replace")
    return LargeBucket(one.band, one.key, one.entries, named)


def _count(buckets: _Buckets, total: Statistics) -> None:
    total.buckets += len(buckets.sizes)
    total.grown += int(np.count_nonzero(buckets.grown))
    total.divided += int(np.count_nonzero(buckets.divided))
    total.entries += int(np.add.reduce(buckets.sizes))
    sizes, counts = np.unique(buckets.sizes, return_counts=True)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        total.sizes[1 << (size - 1).bit_length()] += count


def _largest(buckets: _Buckets, band: int, most: int) -> Iterator[_Found]:
    """Yield a band's largest buckets; of equals, those with the smallest keys."""
    for place in np.argsort(-buckets.sizes, kind="stable")[:most].tolist():
        yield _Found(
            int(buckets.sizes[place]),
            band,
            int(buckets.hashes[place]),
            int(buckets.newest[place]),
        )
