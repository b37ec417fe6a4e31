"""Looks at a shard's store without touching it: what it holds, and whether it is sound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from worker.snapshots.reading import Facts, Reading

__all__ = ["Findings", "inspect", "verify"]

T = TypeVar("T")

_SLICE = 50_000
_ENTRY_BYTES = 16
_SHOWN = 10
"""Of each shard's faults, so that a store that is wrong all over fills no screen."""


@dataclass(slots=True)
class Findings:
    """What a store holds, counted, and what is wrong with it."""

    facts: Facts
    buckets: int = 0
    entries: int = 0
    records: int = 0
    faults: list[str] = field(default_factory=list)
    more_faults: int = 0

    def fault(self, text: str) -> None:
        """Note a fault; past the first few they are only counted."""
        if len(self.faults) < _SHOWN:
            self.faults.append(text)
        else:
            self.more_faults += 1


def inspect(path: Path) -> Facts:
    """Give what a store says of itself, reading almost nothing.

    Raises:
        StoreDamaged: it can't be opened, or has no header.
    """
    with Reading(path) as reading:
        return reading.facts()


def verify(path: Path) -> Findings:
    """Read a whole store: every block's checksum, every bucket, every record.

    Needs 8 bytes of memory for each record. Raises:
        StoreDamaged: it can't be opened, or has no header, or a block is damaged.
    """
    with Reading(path) as reading:
        findings = Findings(reading.facts())
        _frames(findings)
        sequences = _records(reading, findings)
        _buckets(reading, findings, sequences)
        return findings


def _frames(findings: Findings) -> None:
    """Check that the frames that were applied have left nothing out."""
    for partition, span in findings.facts.coverage:
        if span.tiled:
            continue
        length = span.end - span.begin
        missing = length - span.covered
        findings.fault(
            f"partition {partition} of the documents, offsets {span.begin} to {span.end}: the"
            f" frames that were applied cover {span.covered} of {length}:"
            f" {f'{missing} are missing' if missing > 0 else f'{-missing} are there twice'}"
        )


def _records(reading: Reading, findings: Findings) -> npt.NDArray[np.uint64]:
    """Check the records' form; give their sequence numbers, ascending."""
    parts = [np.empty(0, np.uint64)]
    slots: int | None = None
    for chunk in _sliced(reading.records()):
        for sequence, value in chunk:
            found = int.from_bytes(value[:2], "little")
            if slots is None:
                slots = found
            if found != slots or len(value) < 2 + found + 12:
                findings.fault(f"record {sequence}: a sketch of {found} slots, others {slots}")
        parts.append(np.array([sequence for sequence, _ in chunk], np.uint64))
        findings.records += len(chunk)
    return np.concatenate(parts)


def _buckets(reading: Reading, findings: Findings, sequences: npt.NDArray[np.uint64]) -> None:
    """Check that buckets are where they belong, not too large, in order, of known documents."""
    header = findings.facts.header
    shard, shards = int(header.get("shard", 0)), int(header.get("shards", 1))
    known = reading.filter()
    capacity = int(header.get("bucket_capacity", 1 << 30))
    for band, group in groupby(reading.buckets(), lambda pair: pair[0][0]):
        if band % shards != shard:
            findings.fault(f"band {band}: belongs to shard {band % shards}")
        for chunk in _sliced(group):
            sizes = np.array([len(value) for _, value in chunk])
            keys = [key for key, _ in chunk]
            for place in np.flatnonzero((sizes % _ENTRY_BYTES != 0) | (sizes == 0)).tolist():
                findings.fault(f"{_bucket(keys[place])}: {sizes[place]} bytes are no entries")
            for place in np.flatnonzero(sizes > capacity * _ENTRY_BYTES).tolist():
                held = sizes[place] // _ENTRY_BYTES
                findings.fault(f"{_bucket(keys[place])}: {held} entries, takes {capacity}")
            if known is not None:
                missed = ~known.may_hold(np.frombuffer(b"".join(keys), "V9"))
                for place in np.flatnonzero(missed).tolist():
                    findings.fault(f"{_bucket(keys[place])}: the filter denies that it is there")
            whole = [(key, value) for key, value in chunk if len(value) % _ENTRY_BYTES == 0]
            _entries(whole, findings, sequences)
            findings.buckets += len(chunk)


def _entries(
    buckets: list[tuple[bytes, bytes]], findings: Findings, sequences: npt.NDArray[np.uint64]
) -> None:
    joined = b"".join(value for _, value in buckets)
    entries = np.frombuffer(joined, [("sequence", "<u8"), ("time", "<i8")])["sequence"]
    of = np.repeat(np.arange(len(buckets)), [len(value) // _ENTRY_BYTES for _, value in buckets])
    findings.entries += len(entries)
    behind = (of[1:] == of[:-1]) & (entries[1:] <= entries[:-1])
    for place in np.flatnonzero(behind).tolist():
        findings.fault(
            f"{_bucket(buckets[of[place]][0])}: {entries[place + 1]} stands after {entries[place]}"
        )
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
    """Cut a stream into lists of bounded length."""
    iterator = iter(pairs)
    while chunk := list(islice(iterator, _SLICE)):
        yield chunk
