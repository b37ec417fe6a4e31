"""How fast one shard of four is restored: from its whole log, from a snapshot, after a restart.

Without Kafka: *fingerprint* writes the log of NEARDUP_BENCH_INDEX documents (300,000 by
default), which are nearly all new, and *index* reads it in bursts of 16 frames. First it judges
and answers, as in live operation. Then a shard with an empty store replays the log without
answering. Its store is shipped as a snapshot, deleted and restored; the time is from the first
request until the store is open. A third store reads nine tenths, is closed and opened again,
and reads the last tenth.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bench.corpus import short_texts
from bench.report import Figures, Target, console, show
from worker.app import Application
from worker.bus import Record, RecordBatch, TopicPartition, each
from worker.bus.memory.bus import MemoryBus
from worker.index.snapshots.repository import Repository
from worker.index.snapshots.shipper import Shipper
from worker.index.snapshots.soundness import Verification
from worker.offline.embedded import create_topics
from worker.settings.loading import load

SHARDS = 4
PARTITIONS = 4
REPLAY_TARGET = 40_000.0
"""Documents a second."""
RESTORE_TARGET_SECONDS = 30.0
_BATCH = 1_000
_BURST = 16
_NOW_MS = 1_767_225_600_000


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the targets."""
    total = 50_000 if quick else int(os.environ.get("NEARDUP_BENCH_INDEX", "300000"))
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder:
        bench = _Shard(Path(folder))
        log = list(bench.log(total))
        cut = len(log) * 9 // 10
        live = bench.read(log, "live", committed=0)
        whole = bench.read(log, "empty", committed=len(log))
        bench.read(log[:cut], "reopened", committed=cut)
        after = bench.read(log, "reopened", committed=len(log))
        size, restored = bench.restored("empty", len(log))
    rates = {
        "live: judged and answered": total / live,
        "replayed into an empty store": total / whole,
        "last tenth replayed after a restart": total * (1 - cut / len(log)) / after,
    }
    show(
        f"Documents/s of one shard of {SHARDS}, {total:,} documents",
        [Figures(name, [rate]) for name, rate in rates.items()],
    )
    console.print(
        f"A snapshot of {size / 1e6:,.0f} MB was restored and opened in {restored:.1f} s."
    )
    _, *replays = rates.values()
    return [
        Target(
            "replay of a shard, documents/s",
            min(replays),
            REPLAY_TARGET,
            at_least=True,
            form=",.0f",
        ),
        Target("a snapshot restored, s", restored, RESTORE_TARGET_SECONDS, at_least=False),
    ]


class _Shard:
    """Shard 0 of an application, and its log."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        url = str(folder / "snapshots")
        self._repository = Repository(url, "replay")
        self._settings = load(
            None,
            {
                "app": "replay",
                "index.shards": str(SHARDS),
                "index.snapshots.url": url,
            },
        )
        self._topology = self._settings.topology(PARTITIONS)
        self._bus = MemoryBus()
        create_topics(self._bus, self._topology)
        self._place = TopicPartition(self._topology.seats, 0)

    def _application(self, state: str) -> Application:
        return Application(self._settings, self._topology, self._bus, self._folder / state)

    def log(self, total: int) -> Iterator[Record]:
        """Yield the records of the log as the shard's owner reads them."""
        fingerprint = self._application("none").stage("fingerprint")
        documents = self._topology.documents
        fingerprint.adopt(
            {TopicPartition(documents, number): 0 for number in range(PARTITIONS)}, _whole_log
        )
        texts = enumerate(short_texts(total))
        frames = 0
        while batch := list(islice(texts, _BATCH)):
            records = [
                Record(
                    documents,
                    0,
                    number,
                    _NOW_MS,
                    b"",
                    json.dumps({"id": f"doc-{number}", "text": text}).encode(),
                )
                for number, text in batch
            ]
            burst = fingerprint.process(RecordBatch.of(records))
            for signed in each(burst.records):
                yield Record(*self._place, frames, _NOW_MS, None, signed.value)
                frames += 1

    def read(self, log: list[Record], state: str, *, committed: int) -> float:
        """Read a log from the store's offset, without answers up to ``committed``.

        Returns the seconds.
        """
        index = self._application(state).stage("index")
        try:
            start = index.adopt({self._place: committed}, _whole_log)[self._place]
            began = time.monotonic()
            for first in range(start, len(log), _BURST):
                if index.process(RecordBatch.of(log[first : first + _BURST])).offsets:
                    index.committed()
            return time.monotonic() - began
        finally:
            index.close()

    def restored(self, state: str, committed: int) -> tuple[int, float]:
        """Ship a store, delete it and restore it; return its bytes and the seconds to restore."""
        application = self._application(state)
        store = application.directories.open(0)
        shipper = Shipper(
            self._repository,
            application.directories.header,
            shards=SHARDS,
            every_seconds=1,
            keep=1,
            verification=Verification(every_seconds=86_400),
            background=False,
        )
        size = shipper.ship_now(store, 0).size_bytes
        store.close()
        shutil.rmtree(application.directories.path(0))
        index = self._application(state).stage("index")
        began = time.monotonic()
        start = index.adopt({self._place: committed}, _whole_log)
        seconds = time.monotonic() - began
        index.close()
        if start != {self._place: committed}:
            raise SystemExit(f"restored to {start}, not to offset {committed}")
        return size, seconds


def _whole_log(partition: TopicPartition) -> tuple[int, int]:
    del partition
    return 0, 1 << 60
