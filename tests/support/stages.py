"""Each stage with plain values, and the records between them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic

from lsh import Fingerprinter, Parameters
from lsh.index import BucketRules
from worker.bus import Outgoing, Record, RecordBatch, TopicPartition, each
from worker.bus.deadly_documents import DeadlyDocuments
from worker.formats.base import DocumentFormat, DocumentOptions
from worker.formats.first_documents import FieldWatch, TextWatch
from worker.formats.json import JsonFormat
from worker.formats.match_writer import MatchWriter
from worker.index.directory import ShardDirectories
from worker.index.owner import OwnedShards
from worker.index.recovery import Recovery
from worker.index.store import BandStore
from worker.metrics.metrics import Metrics
from worker.stages.base import NOTHING, Burst, Stage
from worker.stages.fingerprint import Fingerprint
from worker.stages.index import Index
from worker.stages.judge import Judge
from worker.stages.reject_limit import RejectLimit
from worker.stages.route import Route
from worker.topology import Topology
from worker.wire.frame import Layout, SetAside

LAYOUT = "layout"
PARAMETERS = Parameters()


def topology(shards: int = 1, generation: int = 0) -> Topology:
    """Return the names that the tests of stages use; all layouts have one id."""
    layout = Layout(LAYOUT, 1, shards, PARAMETERS)
    return Topology("app", "documents", "unique", "duplicate", "rejected", layout, generation)


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
    fingerprinter: Fingerprinter | None = None,
    deaths: DeadlyDocuments | None = None,
    watched: tuple[str, ...] = (),
    texts: TextWatch | None = None,
    sealed: bool = False,
    starts: Mapping[TopicPartition, int] | None = None,
    aside: Sequence[SetAside] = (),
    metrics: Metrics | None = None,
    options: DocumentOptions | None = None,
    silent: bool = False,
) -> Fingerprint:
    reader = JsonFormat(options or DocumentOptions())
    return Fingerprint(
        topology(),
        reader=reader,
        watch=FieldWatch(reader, watched),
        texts=texts,
        fingerprinter=fingerprinter or Fingerprinter(PARAMETERS),
        reject_limit=limit or RejectLimit(share=1),
        frame_bytes=frame_bytes,
        skip_deleted=skip_deleted,
        deaths=deaths,
        sealed=sealed,
        starts=starts,
        aside=aside,
        metrics=metrics,
        silent=silent,
    )


def judge(shards: int = 1, generation: int = 0) -> Judge:
    return Judge(
        topology(shards, generation).layout,
        future_allowance_ms=60_000,
        rules=BucketRules(threshold=0.8),
    )


def index(
    path: Path, shards: int = 1, limit: int = 900_000, generation: int = 0
) -> Index[BandStore]:
    directories = ShardDirectories(path, lambda shard: {"shard": shard})
    return Index(
        topology(shards, generation),
        judge=judge(shards, generation),
        shards=OwnedShards(Recovery(directories), directories, background=False),
        frame_bytes=limit,
    )


def route(
    shards: int = 1,
    buffer_bytes: int = 1 << 20,
    clock: Callable[[], float] = monotonic,
    aside: Sequence[SetAside] = (),
    metrics: Metrics | None = None,
    reader: DocumentFormat | None = None,
) -> Route:
    return Route(
        topology(shards),
        writer=MatchWriter(reader or JsonFormat(DocumentOptions())),
        same_partitions={"unique": True, "duplicate": True, "rejected": False},
        buffer_bytes=buffer_bytes,
        clock=clock,
        aside=aside,
        metrics=metrics,
    )


class Processed(Burst):
    """A burst whose records are single ones."""

    records: list[Outgoing]


def process(
    stage: Stage,
    records: Iterable[Record],
    room: int = sys.maxsize,
    quiet: Mapping[TopicPartition, int] = NOTHING,
) -> Processed:
    """Have a stage process records, in batches of those of one partition that follow each other."""
    burst = stage.process(RecordBatch.of(records), room, quiet)
    return Processed(*burst._replace(records=list(each(burst.records))))


def records(outgoing: Sequence[Outgoing], topic: str, first: int = 0) -> list[Record]:
    """Turn what one stage wrote to a topic into what the next reads."""
    values = [out for out in outgoing if out.topic == topic]
    return [
        Record(topic, out.partition or 0, first + offset, 5_000, out.key, out.value, out.headers)
        for offset, out in enumerate(values)
    ]


def seated(frames: Sequence[Record], shard: int = 0) -> list[Record]:
    """Give records of the order as the owner of a shard reads them."""
    return [frame._replace(topic="app.shards", partition=shard) for frame in frames]


def through(
    path: Path, documents: list[Record], shards: int = 1
) -> tuple[list[Record], list[list[Record]]]:
    """Give the documents, and each shard's answers for them."""
    first = fingerprint()
    first.adopt({DOCS: 0}, no_watermarks)
    signed = process(first, documents)
    frames = records(signed.records, "app.fingerprints")
    second = index(path, shards)
    second.adopt(
        {TopicPartition("app.shards", shard): 0 for shard in range(shards)}, lambda _: (0, 0)
    )
    answered = process(second, [read for shard in range(shards) for read in seated(frames, shard)])
    second.committed()
    second.close()
    return documents, [records(answered.records, f"app.matches-{shard}") for shard in range(shards)]
