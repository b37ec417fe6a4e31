"""An embedded run that takes snapshots, and ways to lose its disk."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.embedded import Run
from tests.support.texts import near_copies
from worker.index.store import BandStore
from worker.stages.index import Index

TEXTS = near_copies(120, 3)
SHARDS = 2


class SnapshotRun(Run):
    """An application that takes a snapshot whenever it is told to."""

    def __init__(self, directory: Path, **more: object) -> None:
        self.kept = directory / "kept"
        snapshots = {"url": str(self.kept), "every_seconds": 1e-6, "keep": 2, **more}
        super().__init__(directory, partitions=1, shards=SHARDS, batch=7, snapshots=snapshots)

    @property
    def index(self) -> Index[BandStore]:
        (stage,) = (s for s in (loop.stage for loop in self.embedded.loops) if isinstance(s, Index))
        return stage

    def snapshot(self) -> None:
        self.index.idle()  # the first time only notes when a shard is due
        self.index.idle()

    @property
    def log_start(self) -> int:
        return self.bus.start_offset(*self.topology.order)

    def store_path(self, shard: int) -> Path:
        return self.embedded.application.directories.path(shard)

    def close(self) -> None:
        self.embedded.close()

    def open(self) -> None:
        self.embedded = self._open()

    def manifests(self, shard: int) -> list[Path]:
        return sorted((self.kept / "neardup" / f"shard-{shard:03d}" / "snapshots").iterdir())

    def feed_some(self, first: int, last: int) -> None:
        self.feed(TEXTS[first:last])
        self.finish()


def lose_everything(run: SnapshotRun) -> None:
    shutil.rmtree(run.store_path(0).parent)


def lose_one(run: SnapshotRun) -> None:
    shutil.rmtree(run.store_path(0))
