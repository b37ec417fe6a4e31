"""Inspects a shard's store without changing it: its facts, whether it is sound, its statistics."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from lsh._core import Shard
from worker.index.contents import Bucket, Contents
from worker.index.errors import StoreDamaged
from worker.index.read_only import ReadOnlyStore, StoreFacts
from worker.index.rocksdb import ReadingEnded

T = TypeVar("T")

_SLICE = 50_000
_SHOWN = 10
"""The most faults that are listed for a shard; the others are only counted."""


@dataclass(slots=True)
class Findings:
    """Counts of what a store holds, and what is wrong with it."""

    facts: StoreFacts
    buckets: int = 0
    entries: int = 0
    records: int = 0
    faults: list[str] = field(default_factory=list)
    more_faults: int = 0

    def fault(self, text: str) -> None:
        """Note a fault; after the first few, faults are only counted."""
        if len(self.faults) < _SHOWN:
            self.faults.append(text)
        else:
            self.more_faults += 1


def inspect_store(path: Path) -> StoreFacts:
    """Return a store's facts, reading almost nothing.

    Raises:
        StoreDamaged: it can't be opened, or has no header.
    """
    with ReadOnlyStore(path) as store:
        return store.facts()


def verify_store(path: Path) -> Findings:
    """Verify a whole store: every checksum, every bucket, every record.

    Needs as much memory as an open store.

    Raises:
        StoreDamaged: it can't be opened, has no header, or has something that isn't as it was
            written.
    """
    with ReadOnlyStore(path) as store:
        findings = Findings(store.facts())
        _frames(findings)
        contents = store.contents()
        shard = store.shard()
        try:
            _records(contents, findings)
            _cells(contents, shard, findings)
            _grown(contents, shard, findings)
            store.check()
        except (ReadingEnded, ValueError) as error:
            raise StoreDamaged(f"{path}: {error}") from error
        return findings


def _frames(findings: Findings) -> None:
    """Check that the applied frames left nothing out."""
    for partition, span in findings.facts.coverage:
        if span.tiled:
            continue
        length = span.end - span.begin
        missing = length - span.covered
        findings.fault(
            f"partition {partition} of the documents, offsets {span.begin} to {span.end}: the"
            f" applied frames cover {span.covered} of {length} offsets:"
            f" {f'{missing} are missing' if missing > 0 else f'{-missing} are covered twice'}"
        )


def _records(contents: Contents, findings: Findings) -> None:
    """Check the number and the form of the records, and, if none has moved, their order."""
    slots, before = 0, -1
    ordered = contents.eras[-1][0] == 0
    for number, record in enumerate(contents.records(), contents.first):
        findings.records += 1
        if record is None:
            continue
        slots = slots or len(record.sketch)
        if len(record.sketch) not in (0, slots):
            findings.fault(
                f"record {number}: its sketch has {len(record.sketch)} slots, others {slots}"
            )
        if ordered and record.sequence <= before:
            findings.fault(
                f"record {number}: document {record.sequence} comes after document {before}"
            )
        before = record.sequence
    kept = contents.inserted - contents.first
    if findings.records != kept:
        findings.fault(f"it has {findings.records} of {kept} records")


def _cells(contents: Contents, shard: Shard, findings: Findings) -> None:
    """Check the cells: as many as the list of runs says, in the right shard, in the filters."""
    header = findings.facts.header
    own, shards = int(header.get("shard", 0)), int(header.get("shards", 1))
    for band in contents.columns:
        if band % shards != own:
            findings.fault(f"band {band}: belongs to shard {band % shards}")
    cells = dict.fromkeys(contents.runs, 0)
    for page in contents.cells():
        findings.buckets += len(page.keys)
        findings.entries += len(page.keys)
        if page.run is not None:
            cells[page.run] += len(page.keys) + page.others
        for band in np.unique(page.columns).tolist():
            _known(shard, band, page.keys[page.columns == band], findings)
    for run, expected in contents.runs.items():
        if cells[run] != expected:
            findings.fault(f"run {run}: has {cells[run]} of {expected} cells")


def _known(shard: Shard, band: int, keys: npt.NDArray[np.uint64], findings: Findings) -> None:
    """Check that a look-up would find buckets."""
    for key in keys[~shard.may_have(band, keys)].tolist():
        findings.fault(f"bucket {key:016x} of band {band}: missing from the filter")


def _grown(contents: Contents, shard: Shard, findings: Findings) -> None:
    """Check the grown buckets: not too large, without repeats, with a cell."""
    capacity = int(findings.facts.header.get("bucket_capacity", 1 << 30))
    for chunk in _sliced(contents.grown()):
        keys: dict[int, list[int]] = {}
        for _, (band, key), bucket in chunk:
            keys.setdefault(band, []).append(key)
            findings.entries += max(0, len(bucket.documents) - 1)  # One has a cell, too.
            why = _wrong_with(bucket, capacity)
            if why is not None:
                findings.fault(f"bucket {key:016x} of band {band}: {why}")
        for band, some in keys.items():
            if band in contents.columns:
                _known(shard, band, np.array(some, np.uint64), findings)
            else:
                findings.fault(f"bucket {some[0]:016x} of band {band}: the shard has no such band")


def _wrong_with(bucket: Bucket, capacity: int) -> str | None:
    """Return what is wrong with a grown bucket; None if nothing is."""
    documents = bucket.documents
    if not documents and not bucket.beyond:
        return "it is empty"
    if len(documents) > capacity:
        return f"{len(documents)} entries, at most {capacity} are allowed"
    if len(set(documents)) < len(documents):
        return "it names a document twice"
    return None


def _sliced(pairs: Iterable[T]) -> Iterator[list[T]]:
    """Split a stream into lists of bounded length."""
    iterator = iter(pairs)
    while chunk := list(islice(iterator, _SLICE)):
        yield chunk


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
    """Statistics of a store, as of its last flush.

    ``documents`` have records; ``facts.documents`` were judged. ``grown`` of the ``buckets`` have
    had more than one entry, and ``divided`` have been full and have overflow, which are buckets,
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
    hashes, newest = _newest(contents, band)
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


def _newest(contents: Contents, band: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
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
