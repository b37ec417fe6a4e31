"""What belongs to no snapshot is deleted in time; what is being shipped is not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from time import time

import pytest

from tests.support.plans import taken_over
from tests.worker.index.snapshots.published import FILES, HEADER, publish
from worker.bus.memory.bus import MemoryBus
from worker.generations.generation import Generation
from worker.generations.modes import Part
from worker.generations.plan import Plan
from worker.index.snapshots.repository import Repository, ShardSnapshots
from worker.index.snapshots.shipper import Shipper
from worker.index.snapshots.soundness import Verification
from worker.index.store import BandStore
from worker.metrics.metrics import Metrics
from worker.offline.embedded import create_topics
from worker.process.parts import Assembly
from worker.settings.loading import load

DAY = 86_400.0
HOUR = 3_600.0
PARTS = ("files/1.x.part", "snapshots/2.json.x.part", "distrusted/3.x.part", "verified/4.x.part")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def snapshots(place: Path, seconds: float = DAY) -> ShardSnapshots:
    return Repository(str(place), "app", erasure_seconds=seconds).shard(3)


def leave(place: Path, name: str, age: float) -> Path:
    """Leave a file behind, of some age in seconds."""
    path = place / "app" / "shard-003" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"an id")
    os.utime(path, (time() - age, time() - age))
    return path


def files(place: Path) -> set[str]:
    root = place / "app" / "shard-003"
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["files/1", *PARTS])
@pytest.mark.parametrize(("seconds", "limit"), [(DAY, HOUR), (600.0, 300.0)])
def test_what_was_left_of_an_upload_is_deleted_once_it_is_old(
    place: Path, tmp_path: Path, name: str, seconds: float, limit: float
) -> None:
    kept = snapshots(place, seconds)
    publish(kept, tmp_path, 1, FILES)
    whole = files(place)
    leave(place, name, limit - 5)
    kept.sweep()
    assert files(place) == {*whole, name}
    leave(place, name, limit + 5)
    kept.sweep()
    assert files(place) == whole


def test_damaged_files_stay_for_a_while(place: Path, tmp_path: Path) -> None:
    kept = snapshots(place)
    published = publish(kept, tmp_path, 1, FILES)
    table = next(file for file in published.files if file.content is None)
    leave(place, f"files/{table.sha256}", 10 * DAY)
    kept.set_aside(table)
    kept.sweep()
    assert f"damaged/{table.sha256}" in files(place)
    leave(place, f"damaged/{table.sha256}", DAY / 2 + 5)
    kept.sweep()
    assert files(place) == {f"snapshots/{published.name}"}


def test_a_manifest_that_can_not_be_read_keeps_whole_files_only(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left = leave(place, "snapshots/9.json", DAY)
    for name in ("files/1", *PARTS):
        leave(place, name, DAY)
    snapshots(place).sweep()
    assert files(place) == {"files/1", "snapshots/9.json"}
    assert f"no files deleted: manifests can't be read: {left.name}" in caplog.text


def test_a_disk_that_is_full_is_left_with_nothing_more(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = snapshots(place)
    whole = publish(kept, tmp_path, 1, FILES)
    before = files(place)

    def full(descriptor: int) -> None:
        raise OSError(28, f"No space left on device: {descriptor}")

    monkeypatch.setattr("worker.index.snapshots.storage.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        publish(kept, tmp_path, 2, {"other.sst": b"b" * 20_000})
    with pytest.raises(OSError, match="No space left"):
        kept.distrust(whole.name, "a test")
    assert files(place) == before


def test_another_index_keeps_its_snapshots(place: Path, tmp_path: Path) -> None:
    kept = snapshots(place)
    publish(kept, tmp_path, 1, {"a.sst": b"a"})
    other = publish(kept, tmp_path, 2, {"b.sst": b"b"}, log="another")
    for name in files(place):
        leave_as_it_is = place / "app" / "shard-003" / name
        os.utime(leave_as_it_is, (0, 0))
    kept.discard(HEADER)
    assert files(place) == {f"snapshots/{other.name}", f"files/{other.files[0].sha256}"}


class Standing:
    """A shard that stands still, and whoever ships it, by a clock that is set by hand."""

    def __init__(self, directory: Path, place: Path, *, background: bool) -> None:
        self.now = 0.0
        self.store = BandStore(directory / "shard-003", HEADER)
        self.store.apply(None, offset=1, documents=0)
        self.shipper = Shipper(
            Repository(str(place), "app", erasure_seconds=600.0),
            lambda _: HEADER,
            shards=4,
            every_seconds=1,
            keep=1,
            verification=Verification(DAY),
            erasure_seconds=600.0,
            background=background,
            clock=lambda: self.now,
        )

    def idle(self) -> None:
        self.shipper.ship_if_due(self.store, 3)
        self.shipper.sweep_if_due(3)


@pytest.fixture
def standing(tmp_path: Path, place: Path) -> Iterator[Standing]:
    made = Standing(tmp_path, place, background=False)
    yield made
    made.shipper.close()
    made.store.close()


def test_a_shard_that_stands_still_is_looked_at_too(standing: Standing, place: Path) -> None:
    standing.idle()
    standing.now = 61.0
    standing.idle()
    shipped = files(place)
    assert shipped
    for _ in range(2):
        leave(place, "files/1.x.part", 400)
        standing.idle()
        assert files(place) != shipped
        standing.now += 101
        standing.idle()
        assert files(place) == shipped


def test_a_look_that_fails_is_named_and_repeated(
    standing: Standing,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    leave(place, "files/1.x.part", 400)

    def refuse(path: str) -> None:
        raise PermissionError(path)

    standing.idle()
    with monkeypatch.context() as context:
        context.setattr("fsspec.implementations.local.LocalFileSystem.rm_file", refuse)
        standing.now = 101.0
        standing.shipper.sweep_if_due(3)
    assert f"shard 3: what belongs to no snapshot could not be deleted from {place}" in caplog.text
    standing.now = 202.0
    standing.shipper.sweep_if_due(3)
    assert files(place) == set()


def test_snapshots_of_a_generation_that_was_left_are_deleted(tmp_path: Path, place: Path) -> None:
    settings = load(overrides={"index.snapshots.url": str(place), "index.shards": 4})
    bus, base = MemoryBus(), settings.topology(1)
    create_topics(bus, base)
    before = Plan.of(settings)
    plan = taken_over(before, Generation.of(settings))
    assembly = Assembly(settings, base, bus, tmp_path / "state", metrics=Metrics())
    kept = {}
    for generation in (before.current, plan.current):
        application = assembly._application(
            Part("index", generation.topology(base), generation=generation)
        )
        repository = application.repository()
        assert repository is not None
        store = application.directories.open(3)
        store.apply(None, offset=1, documents=0)
        application._shipper(repository).ship_now(store, 3)
        store.close()
        kept[generation] = repository.shard(3)
    publish(kept[before.current], tmp_path, 7, FILES, log="of another cluster")
    for _ in range(2):
        assembly.discard_snapshots(plan)
        assert [one.offset for one in kept[before.current].manifests()] == [7]
        assert [one.offset for one in kept[plan.current].manifests()] == [1]
