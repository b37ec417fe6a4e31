"""Each stage with plain values, and the records between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

from lsh import Fingerprinter, Parameters
from worker.bus import Outgoing, Record, TopicPartition
from worker.documents import DocumentFormat, DocumentReader
from worker.shard import BucketRules
from worker.stages import Fingerprint, Index, RejectLimit, Route, Sequencer
from worker.store import BandStore, put_aside
from worker.verdicts import MatchWriter

__all__ = [
    "DOCS",
    "LAYOUT",
    "document",
    "fingerprint",
    "index",
    "no_watermarks",
    "records",
    "route",
    "sequencer",
    "through",
    "whole_log",
]

LAYOUT = "layout"
PARAMETERS = Parameters()
DOCS = TopicPartition("documents", 0)
TEXT = "the quick brown fox jumps over the lazy dog, again and again and again"


def no_watermarks(partition: TopicPartition) -> tuple[int, int]:
    raise AssertionError(partition)


def whole_log(partition: TopicPartition) -> tuple[int, int]:
    del partition
    return 0, 1 << 60


def document(offset: int, text: str = TEXT, **more: object) -> Record:
    value = json.dumps({"id": f"d{offset}", "text": text, **more}).encode()
    return Record("documents", 0, offset, 1_000 + offset, None, value)


def fingerprint(
    limit: RejectLimit | None = None,
    frame_bytes: int = 900_000,
    *,
    skip_deleted: bool = False,
) -> Fingerprint:
    return Fingerprint(
        documents="documents",
        fingerprints="fingerprints",
        rejected="rejected",
        layout=LAYOUT,
        reader=DocumentReader(DocumentFormat()),
        fingerprinter=Fingerprinter(PARAMETERS),
        reject_limit=limit or RejectLimit(share=1),
        frame_bytes=frame_bytes,
        skip_deleted=skip_deleted,
    )


def sequencer(shards: int) -> Sequencer:
    return Sequencer(
        fingerprints="fingerprints",
        bands="bands",
        layout=LAYOUT,
        shards=shards,
        columns=PARAMETERS.bands + 1,
    )


def index(path: Path, shards: int = 1, limit: int = 900_000) -> Index:
    return Index(
        bands="bands",
        matches=lambda shard: f"matches-{shard}",
        layout=LAYOUT,
        shards=shards,
        columns=PARAMETERS.bands + 1,
        rules=BucketRules(threshold=0.8),
        open_store=lambda shard, _on_keys: BandStore(path / str(shard), {"shard": shard}),
        put_aside=lambda shard, why: _aside(path / str(shard), why),
        frame_bytes=limit,
    )


def _aside(path: Path, why: str) -> None:
    put_aside(path, why)


def route(
    shards: int = 1,
    buffer_bytes: int = 1 << 20,
    clock: Callable[[], float] = monotonic,
) -> Route:
    return Route(
        documents="documents",
        matches=lambda shard: f"matches-{shard}",
        shards=shards,
        unique="unique",
        duplicate="duplicate",
        rejected="rejected",
        layout=LAYOUT,
        writer=MatchWriter(),
        same_partitions={"unique": True, "duplicate": True, "rejected": False},
        buffer_bytes=buffer_bytes,
        clock=clock,
    )


def records(outgoing: Sequence[Outgoing], topic: str, first: int = 0) -> list[Record]:
    """Turn what one stage wrote to a topic into what the next reads."""
    values = [out for out in outgoing if out.topic == topic]
    return [
        Record(topic, out.partition or 0, first + offset, 5_000, out.key, out.value, out.headers)
        for offset, out in enumerate(values)
    ]


def through(
    path: Path, documents: list[Record], shards: int = 1
) -> tuple[list[Record], list[list[Record]]]:
    """Give the documents, and each shard's answers for them."""
    first = fingerprint()
    first.adopt({DOCS: 0}, no_watermarks)
    signed = first.process(documents)
    assert signed is not None
    second = sequencer(shards)
    cut = second.process(records(signed.records, "fingerprints"))
    assert cut is not None
    third = index(path, shards)
    owned = {TopicPartition("bands", shard): 0 for shard in range(shards)}
    third.adopt(owned, lambda _: (0, 0))
    bands = [
        Record("bands", shard, offset, 5_000, None, out.value)
        for shard in range(shards)
        for offset, out in enumerate(out for out in cut.records if out.partition == shard)
    ]
    answered = third.process(bands)
    assert answered is not None
    third.committed()
    third.close()
    return documents, [records(answered.records, f"matches-{shard}") for shard in range(shards)]
