"""Statistics of a shard's buckets: how many there are, how large they are, the largest ones."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lsh.index.layout import BEYOND, MOST_DOCUMENTS, id_of
from worker.index.errors import StoreDamaged
from worker.index.keyspace import OPEN_RUN, Range, grown_key, page_key
from worker.index.open_run import unpack_open_cells
from worker.index.read_only import ReadOnlyStore, StoreFacts
from worker.index.record_pages import RecordPages
from worker.index.run_layout import MARK, unpack_cells
from worker.index.run_list import ID_COLUMN, RunList
from worker.index.spans import ReadingEnded, span

__all__ = ["LargeBucket", "Statistics", "store_statistics"]

_SLICE = 50_000
"""The most grown buckets that are unpacked at a time."""
_ENTRY_BYTES = 4

_Hashes = npt.NDArray[np.uint64]
_Numbers = npt.NDArray[np.int64]


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
    with _Store(path) as store:
        try:
            return store.statistics(largest)
        except (ReadingEnded, ValueError) as error:
            raise StoreDamaged(f"{path}: {error}") from error


class _Buckets(NamedTuple):
    """The n buckets of a band: their keys uint64[n], ascending, their sizes and newest entries.

    Both are int64[n]. ``grown`` and ``divided``, bool[n], are as in `Statistics`.
    """

    hashes: _Hashes
    sizes: _Numbers
    newest: _Numbers
    grown: npt.NDArray[np.bool_]
    divided: npt.NDArray[np.bool_]


class _Grown(NamedTuple):
    """What m buckets have grown to in one era; see `_Buckets`."""

    hashes: _Hashes
    sizes: _Numbers
    newest: _Numbers
    divided: npt.NDArray[np.bool_]


class _Found(NamedTuple):
    """A large bucket before its newest document is looked up."""

    entries: int
    band: int
    key: int
    newest: int


class _Store(ReadOnlyStore):
    """A store that is read band by band."""

    def statistics(self, largest: int) -> Statistics:
        """Return the statistics of the whole store."""
        listed, inserted = self._runs_listed(), self.contents().inserted
        eras = listed.eras
        total = Statistics(self.facts(), len(eras.kept), len(listed.runs), inserted - eras.first)
        found: list[_Found] = []
        for slot, band in enumerate(listed.columns):
            if band == ID_COLUMN:
                continue
            buckets = self._buckets(listed, slot, band, inserted)
            _count(buckets, total)
            found = heapq.nsmallest(
                largest,
                [*found, *_largest(buckets, band, largest)],
                key=lambda one: (-one.entries, one.band, one.key),
            )
        total.largest = self._named(found, inserted)
        return total

    def _buckets(self, listed: RunList, slot: int, band: int, inserted: int) -> _Buckets:
        """Return the buckets of a band. Each is what was written last; see `reading`."""
        hashes, numbers = self._cells(listed, slot, inserted)
        ascending = np.lexsort((numbers, hashes))
        hashes, numbers = hashes[ascending], numbers[ascending]
        last = np.ones(len(hashes), np.bool_)
        last[:-1] = hashes[1:] != hashes[:-1]
        hashes, newest = hashes[last], numbers[last]
        first = listed.eras.first
        sizes = (newest >= first).astype(np.int64)
        grown = np.zeros(len(hashes), np.bool_)
        divided = np.zeros(len(hashes), np.bool_)
        starts = np.array([era.first for era in listed.eras.kept])
        written = np.searchsorted(starts, newest, side="right") - 1
        for place, era in enumerate(listed.eras.kept):
            for some in self._grown(era.number, band, first, inserted):
                at = np.searchsorted(hashes, some.hashes)
                if np.any(at == len(hashes)) or np.any(hashes[at] != some.hashes):
                    raise ValueError(f"band {band}: a bucket that has grown has no cell")
                later = written[at] <= place
                at = at[later]
                sizes[at], newest[at] = some.sizes[later], some.newest[later]
                grown[at], divided[at] = True, some.divided[later]
        kept = sizes > 0
        return _Buckets(hashes[kept], sizes[kept], newest[kept], grown[kept], divided[kept])

    def _cells(self, listed: RunList, slot: int, inserted: int) -> tuple[_Hashes, _Numbers]:
        """Return the keys and documents of a column's cells, without marks, in no order."""
        hashes, numbers = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]

        def add(keys: _Hashes, documents: npt.NDArray[np.uint32], end: int) -> None:
            cells = documents < MARK
            lows = documents[cells].astype(np.int64)
            hashes.append(keys[cells])
            numbers.append(end - 1 - ((end - 1 - lows) & (MARK - 1)))

        for run in listed.runs:
            pages = Range(page_key(run.number, slot, 0), page_key(run.number, slot + 1, 0))
            for _, page in self._pages.of(run.number, pages):
                add(*unpack_cells(page), run.end)
        for _, packed in span(self._db, OPEN_RUN):
            cells = unpack_open_cells([packed])
            own = cells.slots == slot
            add(cells.hashes[own], cells.documents[own], inserted)
        return np.concatenate(hashes), np.concatenate(numbers)

    def _grown(self, era: int, band: int, first: int, inserted: int) -> Iterator[_Grown]:
        """Yield what a band's buckets have grown to in an era; ``first``: the first kept number."""
        prefix = grown_key(era, b"")
        keys = Range(prefix + bytes([band]), prefix + bytes([band + 1]))
        pairs = span(self._db, keys)
        while chunk := list(islice(pairs, _SLICE)):
            packed = [value for _, value in chunk if value]
            hashes = b"".join(key[-8:] for key, value in chunk if value)
            if not packed:
                continue
            lows = np.frombuffer(b"".join(packed), "<u4").astype(np.int64)
            beyond = lows >= MOST_DOCUMENTS
            numbers = inserted - 1 - ((inserted - 1 - lows) & (MOST_DOCUMENTS - 1))
            numbers[beyond] = BEYOND
            lengths = np.fromiter(map(len, packed), np.int64, len(packed)) // _ENTRY_BYTES
            starts = np.cumsum(lengths) - lengths
            yield _Grown(
                np.frombuffer(hashes, ">u8").astype(np.uint64),
                np.add.reduceat((numbers >= first).astype(np.int64), starts),
                np.maximum.reduceat(numbers, starts),
                np.logical_or.reduceat(beyond, starts),
            )

    def _named(self, found: list[_Found], inserted: int) -> list[LargeBucket]:
        """Look up the newest document of each bucket."""
        numbers = sorted({one.newest for one in found})
        records = RecordPages(self._many, inserted).read(numbers)
        packed = dict(zip(numbers, records, strict=True))
        return [
            LargeBucket(
                one.band,
                one.key,
                one.entries,
                id_of(record).decode(errors="replace") if (record := packed[one.newest]) else None,
            )
            for one in found
        ]


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
