"""What one index shard decides: bucket by bucket, in sequence order.

Every decision about a bucket (who is inserted, absorbed, dropped) is taken from that
bucket's entries and the sketches alone. Nothing in one band depends on another band, or
on which shard holds it, and so the verdicts don't depend on the number of shards.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lsh import similarity
from worker.store import BandStore, StoreBatch, StoreDamaged

__all__ = ["BucketRules", "Decision", "Match", "ShardBatch", "decide"]

_entry = struct.Struct("<Qq")
_SKETCH_AT = 2
_AFTER_SKETCH = 4 + 8


class Match(NamedTuple):
    """An earlier document that a document nearly repeats."""

    sequence: int
    similarity: float
    id: bytes


@dataclass(frozen=True, slots=True)
class BucketRules:
    """The settings that decide; part of the store's header.

    ``threshold``: estimated similarity from which on a candidate is a match.
    ``absorb``: from which on a document isn't inserted next to an entry that stands for
    it. ``capacity``: entries of a bucket; the oldest goes first. ``max_matches``: the
    best ones that are reported.
    """

    threshold: float
    absorb: float = 0.95
    capacity: int = 32
    max_matches: int = 64


@dataclass(frozen=True, slots=True)
class ShardBatch:
    """Documents in sequence order.

    ``sequences`` uint64[n]; ``times`` int64[n], ms; ``ids``; ``shingles`` uint32[n];
    ``keys`` uint64[c, n], one row for each of the ``columns`` that the shard owns;
    ``sketches`` uint8[n, s].
    """

    sequences: npt.NDArray[np.uint64]
    times: npt.NDArray[np.int64]
    ids: Sequence[bytes]
    shingles: npt.NDArray[np.uint32]
    columns: Sequence[int]
    keys: npt.NDArray[np.uint64]
    sketches: npt.NDArray[np.uint8]


@dataclass(slots=True)
class Decision:
    """What a batch comes to: the matches by row, and the writes that make it so."""

    matches: dict[int, list[Match]]
    writes: StoreBatch
    candidates: int = 0
    absorbed: int = 0
    dropped: int = 0


@dataclass(slots=True)
class _Known:
    """Sketches and ids of documents that buckets name."""

    sketches: dict[int, bytes] = field(default_factory=dict)
    ids: dict[int, bytes] = field(default_factory=dict)


def decide(store: BandStore, batch: ShardBatch, rules: BucketRules) -> Decision:
    """Judge a batch against the store and, in order, against itself; write nothing.

    Cells (a document's key in a column) whose bucket is new and that no other document
    of the batch shares are inserted without looking at them one by one: on a feed of
    mostly new documents, these are nearly all.
    """
    count = len(batch.ids)
    decision = Decision({}, store.batch())
    if not count:
        return decision
    keys, order, run_of = _runs(batch)
    starts = np.flatnonzero(np.diff(run_of, prepend=-1))
    run_keys = keys[order[starts]]
    found = store.buckets(run_keys)
    sizes = np.diff(starts, append=len(run_of))
    is_new = np.array([value is None for value in found])
    plain = is_new & (sizes == 1)

    entries = np.empty(count, dtype=[("sequence", "<u8"), ("time", "<i8")])
    entries["sequence"] = batch.sequences
    entries["time"] = batch.times
    packed: list[bytes] = entries.view("V16").tolist()

    rows = order[starts[plain]] % count
    inserted = np.zeros(count, bool)
    inserted[rows] = True
    decision.writes.put_buckets(run_keys[plain], [packed[row] for row in rows.tolist()])
    contested = np.flatnonzero(~plain)
    if len(contested):
        of_row = _contested_by_row(contested, starts, sizes, order, count)
        buckets = {run: _unpack(found[run]) for run in contested.tolist()}
        known = _fetch(store, buckets)
        changed: set[int] = set()
        for row, runs in of_row:
            grown = _judge(row, {run: buckets[run] for run in runs}, batch, rules, known, decision)
            changed.update(grown)
            inserted[row] |= bool(grown)
        grown_runs = sorted(changed)
        decision.writes.put_buckets(
            run_keys[grown_runs],
            [b"".join(_entry.pack(*entry) for entry in buckets[run]) for run in grown_runs],
        )
    _write_records(batch, inserted, decision.writes)
    return decision


def _runs(
    batch: ShardBatch,
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sort the cells by column and key.

    Returns:
        The store's key of each cell (V9, column by column), the cells' sorted order, in which
        equal keys stand in sequence order, and for each place in it the run it is in.
    """
    columns, count = batch.keys.shape
    raw = np.empty((columns, count, 9), np.uint8)
    raw[:, :, 0] = np.asarray(batch.columns, np.uint8)[:, None]
    raw[:, :, 1:] = batch.keys.astype(">u8").view(np.uint8).reshape(columns, count, 8)
    keys = raw.view("V9").reshape(-1)
    order = np.argsort(batch.keys, axis=1, kind="stable")
    ordered = np.take_along_axis(batch.keys, order, axis=1)
    changes = np.ones((columns, count), bool)
    changes[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    flat = (order + np.arange(columns)[:, None] * count).reshape(-1)
    return keys, flat, np.cumsum(changes.reshape(-1)) - 1


def _contested_by_row(
    contested: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    count: int,
) -> list[tuple[int, list[int]]]:
    """Give, in sequence order, each document that has contested cells, and their runs."""
    runs = np.repeat(contested, sizes[contested])
    within = np.arange(len(runs)) - np.repeat(
        np.cumsum(sizes[contested]) - sizes[contested], sizes[contested]
    )
    rows = order[np.repeat(starts[contested], sizes[contested]) + within] % count
    by_row = np.argsort(rows, kind="stable")
    rows = rows[by_row]
    cuts = np.flatnonzero(np.diff(rows)) + 1
    parts = np.split(runs[by_row], cuts)
    firsts = rows[np.concatenate(([0], cuts))]
    return [(row, part.tolist()) for row, part in zip(firsts.tolist(), parts, strict=True)]


def _unpack(value: bytes | None) -> list[tuple[int, int]]:
    return list(_entry.iter_unpack(value)) if value else []


def _fetch(store: BandStore, buckets: dict[int, list[tuple[int, int]]]) -> _Known:
    """Read the records of all documents that the buckets name."""
    named = sorted({sequence for bucket in buckets.values() for sequence, _ in bucket})
    known = _Known()
    for sequence, record in zip(named, store.records(named), strict=True):
        if record is None:
            msg = f"{store.path}: a bucket names document {sequence}, which has no record"
            raise StoreDamaged(msg)
        after = _SKETCH_AT + (record[0] | record[1] << 8)
        known.sketches[sequence] = record[_SKETCH_AT:after]
        known.ids[sequence] = record[after + _AFTER_SKETCH :]
    return known


def _judge(  # noqa: PLR0913, PLR0917 -- the loop's body, kept apart for reading
    row: int,
    buckets: dict[int, list[tuple[int, int]]],
    batch: ShardBatch,
    rules: BucketRules,
    known: _Known,
    decision: Decision,
) -> list[int]:
    """Match one document against its buckets, then update each; give those it went into."""
    candidates = list({sequence for bucket in buckets.values() for sequence, _ in bucket})
    similar: dict[int, float] = {}
    sketch = batch.sketches[row]
    if candidates:
        decision.candidates += len(candidates)
        others = np.frombuffer(b"".join(map(known.sketches.__getitem__, candidates)), np.uint8)
        estimates = similarity(sketch, others.reshape(len(candidates), -1)).tolist()
        similar = dict(zip(candidates, estimates, strict=True))
        best = sorted(
            (-estimate, sequence)
            for sequence, estimate in similar.items()
            if estimate >= rules.threshold
        )[: rules.max_matches]
        if best:
            decision.matches[row] = [Match(s, -negative, known.ids[s]) for negative, s in best]
    entry = (int(batch.sequences[row]), int(batch.times[row]))
    grown = []
    for run, bucket in buckets.items():
        if any(similar[sequence] >= rules.absorb for sequence, _ in bucket):
            decision.absorbed += 1
            continue
        bucket.append(entry)
        grown.append(run)
        if len(bucket) > rules.capacity:
            del bucket[0]
            decision.dropped += 1
    if grown:
        known.sketches[entry[0]] = sketch.tobytes()
        known.ids[entry[0]] = batch.ids[row]
    return grown


def _write_records(batch: ShardBatch, inserted: npt.NDArray[np.bool_], writes: StoreBatch) -> None:
    """Keep sketch and id of every document that a bucket now names."""
    rows = np.flatnonzero(inserted)
    fixed = np.empty(len(rows), _record(batch.sketches.shape[1]))
    fixed["slots"] = batch.sketches.shape[1]
    fixed["sketch"] = batch.sketches[rows]
    fixed["shingles"] = batch.shingles[rows]
    fixed["time"] = batch.times[rows]
    packed: list[bytes] = fixed.view(f"V{fixed.dtype.itemsize}").tolist()
    ids = batch.ids
    writes.put_records(
        batch.sequences[rows],
        [record + ids[row] for record, row in zip(packed, rows.tolist(), strict=True)],
    )


def _record(slots: int) -> np.dtype[np.void]:
    """Give the layout of a document record; the id follows, to its end."""
    return np.dtype(
        [("slots", "<u2"), ("sketch", "u1", (slots,)), ("shingles", "<u4"), ("time", "<i8")]
    )
