"""What is exported of the newest snapshot: whoever shipped it, and of the shards that are here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.filling import fill
from worker.index.keyspace import StoreHeader
from worker.index.snapshots.repository import Repository, ShardSnapshots
from worker.index.snapshots.shipper import Shipper
from worker.index.snapshots.soundness import Verification
from worker.index.store import BandStore
from worker.metrics import table
from worker.metrics.metrics import Metrics

HEADER: StoreHeader = {"log": "one"}


class Storage(Repository):
    """A repository whose storage may be away."""

    away = False

    def shard(self, shard: int) -> ShardSnapshots:
        if self.away:
            raise OSError("no route to the storage")
        return super().shard(shard)


class Worker:
    """A worker that owns shard 0; ``now`` is its clock."""

    def __init__(self, directory: Path, url: Path) -> None:
        self.store = BandStore(directory / "shard-000", HEADER)
        self.metrics = Metrics()
        self.now = 0.0
        self.repository = Storage(str(url), "app")
        self.shipper = Shipper(
            self.repository,
            lambda _: HEADER,
            shards=1,
            every_seconds=100,
            keep=2,
            verification=Verification(1e9),
            background=False,
            metrics=self.metrics,
            clock=lambda: self.now,
        )

    def idle(self, now: float) -> None:
        self.now = now
        self.shipper.ship_if_due(self.store, 0)
        self.shipper.look_if_due(0)

    def shown(self) -> dict[tuple[str, ...], float]:
        return self.metrics.numbers(table.SNAPSHOT_OFFSET)


@pytest.fixture
def url(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def test_a_shard_without_a_snapshot_has_no_series(tmp_path: Path, url: Path) -> None:
    worker = Worker(tmp_path, url)
    worker.idle(0)
    assert worker.shown() == {}


def test_a_worker_that_takes_a_shard_over_knows_what_another_one_shipped(
    tmp_path: Path, url: Path
) -> None:
    one, two = Worker(tmp_path / "one", url), Worker(tmp_path / "two", url)
    fill(one.store, 7, 100)
    one.idle(0)
    one.idle(60)
    assert one.shown() == {("0",): 7}
    at = table.SNAPSHOT_TIMESTAMP_SECONDS
    two.idle(0)
    assert two.shown() == {("0",): 7}
    assert two.metrics.numbers(at) == one.metrics.numbers(at) != {}
    one.shipper.forget(0)
    assert one.shown() == {}
    assert one.metrics.numbers(at) == one.metrics.numbers(table.SNAPSHOT_BYTES) == {}


def test_a_snapshot_that_is_distrusted_is_not_the_newest(tmp_path: Path, url: Path) -> None:
    worker = Worker(tmp_path, url)
    for offset, now in ((7, 60), (9, 200)):
        fill(worker.store, offset, 100)
        worker.idle(now - 60)
        worker.idle(now)
        assert worker.shown() == {("0",): offset}
    snapshots = Repository(str(url), "app").shard(0)
    snapshots.distrust(snapshots.manifests()[0].name, "a test")
    worker.idle(400)
    assert worker.shown() == {("0",): 7}


def test_a_storage_that_is_gone_leaves_what_was_known(
    tmp_path: Path, url: Path, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker(tmp_path, url)
    fill(worker.store, 7, 100)
    worker.idle(0)
    worker.idle(60)
    worker.repository.away = True
    worker.idle(200)
    assert worker.shown() == {("0",): 7}
    assert "the newest snapshot could not be found" in caplog.text
    assert "no route to the storage" in caplog.text
