"""Inspects a shard's store without changing it: its contents, and whether it is sound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lsh.index.layout import ENTRY, record_slots, smallest_record, unpack_entries
from worker.index.read_only import ReadOnlyStore, StoreFacts

__all__ = ["Findings", "inspect_store", "verify_store"]

T = TypeVar("T")

_SLICE = 50_000
_ENTRY_BYTES = ENTRY.itemsize
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

    Needs 8 bytes of memory per record.

    Raises:
        StoreDamaged: it can't be opened, has no header, or has a damaged block.
    """
    with ReadOnlyStore(path) as store:
        findings = Findings(store.facts())
        _frames(findings)
        sequences = _records(store, findings)
        _buckets(store, findings, sequences)
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


def _records(store: ReadOnlyStore, findings: Findings) -> npt.NDArray[np.uint64]:
    """Check the form of the records; return their sequence numbers, ascending."""
    parts = [np.empty(0, np.uint64)]
    slots: int | None = None
    for chunk in _sliced(store.records()):
        for sequence, value in chunk:
            found = record_slots(value)
            if slots is None:
                slots = found
            if found != slots or len(value) < smallest_record(found):
                findings.fault(f"record {sequence}: its sketch has {found} slots, others {slots}")
        parts.append(np.array([sequence for sequence, _ in chunk], np.uint64))
        findings.records += len(chunk)
    return np.concatenate(parts)


def _buckets(store: ReadOnlyStore, findings: Findings, sequences: npt.NDArray[np.uint64]) -> None:
    """Check the buckets: in the right shard, not too large, in order, of known documents."""
    header = findings.facts.header
    shard, shards = int(header.get("shard", 0)), int(header.get("shards", 1))
    known = store.filter()
    capacity = int(header.get("bucket_capacity", 1 << 30))
    for band, group in groupby(store.buckets(), lambda pair: pair[0][0]):
        if band % shards != shard:
            findings.fault(f"band {band}: belongs to shard {band % shards}")
        for chunk in _sliced(group):
            sizes = np.array([len(value) for _, value in chunk])
            keys = [key for key, _ in chunk]
            for place in np.flatnonzero((sizes % _ENTRY_BYTES != 0) | (sizes == 0)).tolist():
                findings.fault(
                    f"{_bucket(keys[place])}: {sizes[place]} bytes are not whole entries"
                )
            for place in np.flatnonzero(sizes > capacity * _ENTRY_BYTES).tolist():
                held = sizes[place] // _ENTRY_BYTES
                findings.fault(
                    f"{_bucket(keys[place])}: {held} entries, at most {capacity} are allowed"
                )
            if known is not None:
                missed = ~known.may_hold(np.frombuffer(b"".join(keys), "V9"))
                for place in np.flatnonzero(missed).tolist():
                    findings.fault(f"{_bucket(keys[place])}: missing from the filter")
            whole = [(key, value) for key, value in chunk if len(value) % _ENTRY_BYTES == 0]
            _entries(whole, findings, sequences)
            findings.buckets += len(chunk)


def _entries(
    buckets: list[tuple[bytes, bytes]], findings: Findings, sequences: npt.NDArray[np.uint64]
) -> None:
    entries = unpack_entries(value for _, value in buckets)["sequence"]
    of = np.repeat(np.arange(len(buckets)), [len(value) // _ENTRY_BYTES for _, value in buckets])
    findings.entries += len(entries)
    behind = (of[1:] == of[:-1]) & (entries[1:] <= entries[:-1])
    for place in np.flatnonzero(behind).tolist():
        bucket = _bucket(buckets[of[place]][0])
        findings.fault(f"{bucket}: out of order, {entries[place + 1]} after {entries[place]}")
    at = np.searchsorted(sequences, entries)
    known = at < len(sequences)
    known[known] = sequences[at[known]] == entries[known]
    for place in np.flatnonzero(~known).tolist():
        findings.fault(
            f"{_bucket(buckets[of[place]][0])}: names document {entries[place]}, without a record"
        )


def _bucket(key: bytes) -> str:
    return f"bucket {key[1:].hex()} of band {key[0]}"


def _sliced(pairs: Iterable[T]) -> Iterator[list[T]]:
    """Split a stream into lists of bounded length."""
    iterator = iter(pairs)
    while chunk := list(islice(iterator, _SLICE)):
        yield chunk
