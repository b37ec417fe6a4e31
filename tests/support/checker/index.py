"""A shard's live index equals one that is rebuilt from its log."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lsh.index import BucketRules, DocumentBatch, Forgotten
from tests.support.frame_keys import keys_of
from tests.support.stored_clock import StoredClock
from worker.bus import Record
from worker.index.contents import StoredRecord
from worker.index.store import BandStore
from worker.stages.judge import pass_over
from worker.topology import Topology
from worker.wire.codec import decode, hand_over
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.frame import POSITION_BITS

ALLOWANCE_MS = 60_000
"""By default a document's time is at most so far after the log's."""
_ENTRY = struct.Struct("<Qq")
_SIZES = struct.Struct("<IH")


class Dump(NamedTuple):
    """All that decides in a shard's store.

    ``buckets``: by band number and key, as entries; ``records`` of the documents that a
    bucket names, by sequence number, None where there is none.
    """

    buckets: Mapping[bytes, bytes]
    records: Mapping[int, bytes | None]
    offset: int
    now: int | None


def dump(store: BandStore) -> Dump:
    """Read a whole store, without what was forgotten."""
    contents = store.contents()
    every = enumerate(contents.records(), contents.first)
    documents = {number: record for number, record in every if record is not None}
    clock = StoredClock.unpacked(store.clock)
    times = {number: clock.settled(document.time) for number, document in documents.items()}
    buckets = {
        bytes([column]) + key.to_bytes(8, "big"): [one for one in held if one in documents]
        for (column, key), (held, _) in contents.buckets().items()
    }
    named = {number for bucket in buckets.values() for number in bucket}
    return Dump(
        {
            key: b"".join(_ENTRY.pack(documents[n].sequence, times[n]) for n in bucket)
            for key, bucket in buckets.items()
            if bucket
        },
        {documents[n].sequence: _decisive(documents[n], times[n]) for n in named},
        store.offset,
        store.now,
    )


def _decisive(record: StoredRecord, time: int) -> bytes:
    """Return a record without what depends on where bursts were cut.

    That is what saves reading, and whether the time is a mark; see `core/src/index/clock.rs`.
    """
    sizes = _SIZES.pack(record.shingles, len(record.sketch))
    return _ENTRY.pack(record.sequence, time) + sizes + record.sketch + record.id


def entries(bucket: bytes) -> list[tuple[int, int]]:
    """Give a bucket's entries in their order: sequence number, time in ms."""
    return list(_ENTRY.iter_unpack(bucket))


def rebuilt(
    fingerprints: Sequence[Record],
    topology: Topology,
    rules: BucketRules,
    shard: int,
    directory: Path,
) -> Dump:
    """Judge the whole log anew, frame by frame, into a store in an empty directory."""
    store = BandStore(directory / f"rebuilt-{shard}", {"shard": shard})
    return continued(store, fingerprints, topology, rules, shard)


def continued(
    store: BandStore,
    fingerprints: Sequence[Record],
    topology: Topology,
    rules: BucketRules,
    shard: int,
) -> Dump:
    """Judge what a shard's store has not seen of the log, frame by frame, and close it."""
    try:
        for record in fingerprints:
            if record.offset < store.offset:
                continue
            if hand_over(record.value, topology.layout.id) is not None:
                pass_over(store, record.offset + 1)
                continue
            batch = _batch(record, topology, shard)
            decision = store.decide(batch, rules)
            store.apply(
                decision,
                offset=record.offset + 1,
                documents=len(batch.ids),
            )
        return dump(store)
    finally:
        store.close()


def unexpired(whole: Dump, window_ms: int) -> Dump:
    """Return the entries that live by their own documents' times, those of a bucket by number.

    When space is given back depends on where bursts were cut, and so does whether a document
    that was renewed has moved behind others. Which entries live doesn't.
    """
    buckets = {
        key: b"".join(
            _ENTRY.pack(*entry)
            for entry in sorted(entries(bucket))
            if whole.now is None or entry[1] >= whole.now - window_ms
        )
        for key, bucket in whole.buckets.items()
    }
    buckets = {key: bucket for key, bucket in buckets.items() if bucket}
    named = {sequence for bucket in buckets.values() for sequence, _ in entries(bucket)}
    return whole._replace(
        buckets=buckets,
        records={number: whole.records[number] for number in named},
    )


def index_differences(live: Dump, fresh: Dump) -> Iterator[str]:
    """Say, bucket by bucket and record by record, where a live index isn't the rebuilt one.

    Both must have come equally far in the log.
    """
    for name in ("offset", "now"):
        if getattr(live, name) != getattr(fresh, name):
            yield f"{name} is {getattr(live, name)}, and {getattr(fresh, name)} once rebuilt"
    for key in sorted(live.buckets.keys() | fresh.buckets.keys()):
        if live.buckets.get(key) == fresh.buckets.get(key):
            continue
        at = f"bucket {key[1:].hex()} of band {key[0]}"
        if key not in fresh.buckets:
            yield f"{at} holds {entries(live.buckets[key])}, and isn't there once rebuilt"
        elif key not in live.buckets:
            yield f"{at} is missing: rebuilt, it holds {entries(fresh.buckets[key])}"
        else:
            has, wanted = entries(live.buckets[key]), entries(fresh.buckets[key])
            yield f"{at} holds {has}, and {wanted} once rebuilt"
    for sequence in sorted(live.records.keys() | fresh.records.keys()):
        has_record, wanted_record = live.records.get(sequence), fresh.records.get(sequence)
        if has_record is None:
            yield f"document {sequence} has no record"
        elif has_record != wanted_record:
            yield (
                f"the record of document {sequence} is {_shown(has_record)}, and "
                + ("isn't there" if wanted_record is None else _shown(wanted_record))
                + " once rebuilt"
            )


def _shown(record: bytes) -> str:
    return f"{record.hex()[:64]} ({len(record)} bytes)"


def _batch(record: Record, topology: Topology, shard: int) -> DocumentBatch:
    frame = decode(FingerprintFrame, record.value, topology.layout.id)
    columns = range(shard, topology.layout.columns, topology.layout.shards)
    own = frame.times
    count = len(own)
    keys = keys_of(frame, topology.layout.parameters)
    first = (topology.layout.numbered_from + record.offset) << POSITION_BITS
    return DocumentBatch(
        sequences=np.uint64(first) + np.arange(count, dtype=np.uint64),
        times=np.minimum(own, record.timestamp + ALLOWANCE_MS),
        ids=frame.ids.unpack(),
        shingles=frame.shingles,
        columns=columns,
        keys=np.array([[each[column] for each in keys] for column in columns], np.uint64),
        sketches=frame.sketches,
        forgotten=[
            Forgotten(sum(offset < at for offset in frame.offsets.tolist()), ident)
            for at, ident in zip(
                frame.tombstones.offsets.tolist(), frame.tombstones.ids.unpack(), strict=True
            )
        ],
    )
