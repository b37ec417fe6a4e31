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
from worker.stages import Fingerprint, Index, RejectLimit, Route
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
    "seated",
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


def index(path: Path, shards: int = 1, limit: int = 900_000) -> Index:
    return Index(
        seats="shards",
        matches=lambda shard: f"matches-{shard}",
        layout=LAYOUT,
        shards=shards,
        columns=PARAMETERS.bands + 1,
        future_allowance_ms=60_000,
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


def seated(frames: Sequence[Record], shard: int = 0) -> list[Record]:
    """Give records of the order as the owner of a shard reads them."""
    return [frame._replace(topic="shards", partition=shard) for frame in frames]


def through(
    path: Path, documents: list[Record], shards: int = 1
) -> tuple[list[Record], list[list[Record]]]:
    """Give the documents, and each shard's answers for them."""
    first = fingerprint()
    first.adopt({DOCS: 0}, no_watermarks)
    signed = first.process(documents)
    assert signed is not None
    frames = records(signed.records, "fingerprints")
    second = index(path, shards)
    second.adopt({TopicPartition("shards", shard): 0 for shard in range(shards)}, lambda _: (0, 0))
    answered = second.process([read for shard in range(shards) for read in seated(frames, shard)])
    assert answered is not None
    second.committed()
    second.close()
    return documents, [records(answered.records, f"matches-{shard}") for shard in range(shards)]
