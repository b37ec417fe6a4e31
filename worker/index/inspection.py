"""Inspects a shard's store without changing it: its contents, and whether it is sound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lsh._core import Shard
from worker.index.contents import Bucket, Contents
from worker.index.errors import StoreDamaged
from worker.index.read_only import ReadOnlyStore, StoreFacts
from worker.index.spans import ReadingEnded

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
