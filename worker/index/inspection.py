"""Inspects a shard's store without changing it: its contents, and whether it is sound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from lsh.index import BucketKeys
from lsh.index.layout import BEYOND, MOST_DOCUMENTS, unpack_bucket, unpack_record
from worker.index.contents import Contents
from worker.index.errors import StoreDamaged
from worker.index.read_only import ReadOnlyStore, StoreFacts
from worker.index.run_list import ID_COLUMN
from worker.index.run_lookup import RunLookup
from worker.index.spans import ReadingEnded

__all__ = ["Findings", "inspect_store", "verify_store"]

T = TypeVar("T")

_SLICE = 50_000
_ENTRY_BYTES = 4
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
    """Verify a whole store: every block's checksum, every bucket, every record.

    Needs as much memory as an open store.

    Raises:
        StoreDamaged: it can't be opened, has no header, or has a damaged block.
    """
    with ReadOnlyStore(path) as store:
        findings = Findings(store.facts())
        _frames(findings)
        contents = store.contents()
        runs = store.runs()
        try:
            _records(contents, findings)
            _cells(contents, runs, findings)
            _grown(contents, runs, findings)
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
    slots = 0
    before = -1
    first = contents.runs.eras.first
    ordered = contents.runs.eras.current.number == 0
    for number, packed in enumerate(contents.records(), first):
        findings.records += 1
        if not packed:  # It was forgotten.
            continue
        try:
            record = unpack_record(packed)
        except ValueError as error:
            findings.fault(f"record {number}: {error}")
            continue
        slots = slots or len(record.sketch)
        if len(record.sketch) not in (0, slots):  # No bucket names one that has none.
            findings.fault(
                f"record {number}: its sketch has {len(record.sketch)} slots, others {slots}"
            )
        if ordered and record.sequence <= before:
            findings.fault(
                f"record {number}: document {record.sequence} comes after document {before}"
            )
        before = record.sequence
    kept = contents.inserted - first
    if findings.records != kept:
        findings.fault(f"it has {findings.records} of {kept} records")


def _cells(contents: Contents, runs: RunLookup, findings: Findings) -> None:
    """Check the cells: in the right shard, page and order, of known documents."""
    cells = dict.fromkeys((run.number for run in contents.runs.runs), 0)
    _columns(contents.runs.columns, findings)
    for run, page, keys, documents, marks in contents.cells():
        if not (len(keys.columns) and keys.columns[0] == ID_COLUMN):
            findings.buckets += len(documents)
            findings.entries += len(documents)
        first = contents.runs.end if run is None else run.first
        end = max(contents.inserted, first + 1) if run is None else run.end
        for place in np.flatnonzero((documents < first) | (documents >= end)).tolist():
            findings.fault(
                f"{_bucket(keys, place)}: names document {_as_stored(documents[place])}, and its"
                f" run has {first} to before {end}"
            )
        if run is None:
            continue
        cells[run.number] += len(documents) + marks
        wrong = contents.runs.shape(run.tier).page(keys.hashes) != page
        wrong[1:] |= keys.hashes[1:] <= keys.hashes[:-1]
        for place in np.flatnonzero(wrong).tolist():
            findings.fault(f"{_bucket(keys, place)}: on the wrong page, {page} of run {run.number}")
        for place in _unknown(runs, keys):
            findings.fault(f"{_bucket(keys, place)}: missing from the filter")
    for run in contents.runs.runs:
        if cells[run.number] != run.cells:
            findings.fault(f"run {run.number}: has {cells[run.number]} of {run.cells} cells")


def _unknown(runs: RunLookup, keys: BucketKeys) -> list[int]:
    """Return the places of the buckets that a look-up wouldn't find."""
    places = np.arange(len(keys.hashes))
    unknown: list[int] = np.setdiff1d(places, runs.suspects(keys).all_places()).tolist()
    return unknown


def _columns(columns: list[int], findings: Findings) -> None:
    header = findings.facts.header
    shard, shards = int(header.get("shard", 0)), int(header.get("shards", 1))
    for band in columns:
        if band != ID_COLUMN and band % shards != shard:
            findings.fault(f"band {band}: belongs to shard {band % shards}")


def _grown(contents: Contents, runs: RunLookup, findings: Findings) -> None:
    """Check the grown buckets: not too large, in order, of known documents, with a cell."""
    capacity = int(findings.facts.header.get("bucket_capacity", 1 << 30))
    for chunk in _sliced(contents.grown()):
        keys = BucketKeys.unpacked(key for _, key, _ in chunk)
        for place, (_, _, packed) in enumerate(chunk):
            why = _wrong_with(packed, capacity, contents)
            if why is not None:
                findings.fault(f"{_bucket(keys, place)}: {why}")
            findings.entries += max(0, _entries(packed) - 1)  # One has a cell, too.
        strange = ~np.isin(keys.columns, contents.runs.columns)
        for place in np.flatnonzero(strange).tolist():
            findings.fault(f"{_bucket(keys, place)}: the shard has no such band")
        known = np.flatnonzero(~strange)
        held = keys.take(known)
        marked = set(zip(*(part.tolist() for part in runs.eras_grown(held)), strict=True))
        unmarked = {
            place
            for place, row in enumerate(known.tolist())
            if (place, chunk[row][0]) not in marked
        }
        for place in sorted(unmarked.union(_unknown(runs, held))):
            findings.fault(f"{_bucket(held, place)}: missing from the filter")


def _entries(packed: bytes) -> int:
    """Return how many entries a bucket has, without the note that it has finer ones."""
    return len(packed) // _ENTRY_BYTES - packed.endswith(b"\xff" * _ENTRY_BYTES)


def _wrong_with(packed: bytes, capacity: int, contents: Contents) -> str | None:
    """Return what is wrong with a grown bucket; None if nothing is."""
    try:
        bucket = unpack_bucket(packed, contents.inserted)
    except ValueError as error:
        return str(error)
    if not bucket:
        return "it is empty"
    if bucket[-1] == BEYOND:
        bucket.pop()
    if len(bucket) > capacity:
        return f"{len(bucket)} entries, at most {capacity} are allowed"
    if len(set(bucket)) < len(bucket):
        return "it names a document twice"
    if bucket and min(bucket) < 0:
        return f"names document {_as_stored(min(bucket))}, without a record"
    return None


def _as_stored(number: int) -> int:
    """Return a document's number; of one that can't be, what is stored of it."""
    return int(number) if number >= 0 else int(number) % MOST_DOCUMENTS


def _bucket(keys: BucketKeys, place: int) -> str:
    return f"bucket {int(keys.hashes[place]):016x} of band {keys.columns[place]}"


def _sliced(pairs: Iterable[T]) -> Iterator[list[T]]:
    """Split a stream into lists of bounded length."""
    iterator = iter(pairs)
    while chunk := list(islice(iterator, _SLICE)):
        yield chunk
