"""Shards that are opened and fetched in the background, while the loop goes on polling."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic

import pytest
from msgspec.structs import replace

from tests.support.filling import fill
from tests.support.stages import judge, topology
from tests.worker.wire.samples import FINGERPRINTS
from worker.bus import Outgoing, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.index.directory import ShardDirectories
from worker.index.keyspace import StoreHeader
from worker.index.owner import OwnedShards
from worker.index.recovery import Recovery
from worker.index.restore_progress import RestoreProgress
from worker.index.rocksdb import StoreOptions
from worker.index.snapshots.manifest import Manifest
from worker.index.snapshots.repository import Repository, ShardSnapshots
from worker.index.snapshots.shipper import Shipper
from worker.index.snapshots.soundness import Verification
from worker.index.snapshots.storage import Storage
from worker.index.store import BandStore
from worker.loop.loop import Loop
from worker.process.watchdog import Pulse, Watchdog
from worker.stages.base import Burst, StageError
from worker.stages.index import Index
from worker.wire.codec import FrameError, encode

PLACE = TopicPartition("app.shards", 0)
HEADER: StoreHeader = {"a": 1}
SECONDS = 60.0


class Disk(ShardDirectories):
    """A shard's directory, which opens only as the test lets it."""

    def __init__(self, state_dir: Path, options: StoreOptions | None = None) -> None:
        super().__init__(state_dir, lambda _: HEADER, options=options)
        self.place = self.path(0)
        self.may_open = threading.Event()
        self.opening = threading.Event()
        self.error: Exception | None = None

    def open(
        self, shard: int, on_cells: Callable[[int, int], None] = lambda _count, _total: None
    ) -> BandStore:
        assert shard == 0
        self.opening.set()
        assert self.may_open.wait(SECONDS)
        if self.error is not None:
            raise self.error
        return super().open(shard, on_cells)


def index(disk: Disk, repository: Repository | None = None) -> Index[BandStore]:
    return Index(
        topology(),
        judge=judge(),
        shards=OwnedShards(Recovery(disk, repository), disk, background=True),
    )


def log(_place: TopicPartition) -> tuple[int, int]:
    return 0, 1_000


def until(stage: Index[BandStore]) -> Mapping[TopicPartition, int]:
    """Ask as the loop does until something has started."""
    deadline = monotonic() + SECONDS
    while monotonic() < deadline:
        if starts := stage.process([]).starts:
            return starts
    raise AssertionError("nothing has started in time")


def holding(path: Path, offset: int) -> None:
    """Make a store that has come so far."""
    store = BandStore(path, HEADER)
    store.apply(None, offset=offset, documents=0)
    store.close()


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "state")


def test_a_shard_starts_when_its_store_is_open(disk: Disk) -> None:
    holding(disk.place, 7)
    stage = index(disk)
    assert stage.adopt({PLACE: 9}, log) == {}
    assert stage.process([]) == Burst([], {}, held=frozenset({PLACE}))
    assert set(stage.status().restoring) == {0}
    disk.may_open.set()
    assert until(stage) == {PLACE: 7}
    assert stage.process([]).held == frozenset()
    assert stage.status().restoring[0].remaining == 2
    assert stage.adopt({PLACE: 9}, log) == {PLACE: 7}
    stage.close()


def test_a_shard_that_is_taken_away_meanwhile_is_closed_and_can_come_back(disk: Disk) -> None:
    stage = index(disk)
    stage.adopt({PLACE: 0}, log)
    assert disk.opening.wait(SECONDS)
    assert stage.adopt({}, log) == {}
    assert stage.process([]).held == frozenset()
    assert not stage.status().restoring
    assert stage.adopt({PLACE: 0}, log) == {}
    disk.may_open.set()
    assert until(stage) == {PLACE: 0}
    stage.close()
    BandStore(disk.place, HEADER).close()


def test_a_roll_back_meanwhile_moves_the_goal_only(disk: Disk) -> None:
    stage = index(disk)
    stage.adopt({PLACE: 3}, log)
    assert disk.opening.wait(SECONDS)
    disk.opening.clear()
    assert stage.adopt({PLACE: 5}, log) == {}
    disk.may_open.set()
    assert until(stage) == {PLACE: 0}
    assert stage.status().restoring[0].remaining == 5
    assert not disk.opening.is_set()
    stage.close()


def test_what_failed_with_an_earlier_range_of_the_log_is_tried_with_the_present_one(
    disk: Disk,
) -> None:
    stage = index(disk)
    stage.adopt({PLACE: 9}, lambda _place: (5, 1_000))
    assert disk.opening.wait(SECONDS)
    stage.adopt({PLACE: 9}, log)
    disk.may_open.set()
    assert until(stage) == {PLACE: 0}
    stage.close()


def test_what_fails_with_the_present_range_ends_the_stage(disk: Disk) -> None:
    disk.may_open.set()
    stage = index(disk)
    with pytest.raises(StageError, match="must be rebuilt from offset 0"):  # noqa: PT012 -- either
        stage.adopt({PLACE: 9}, lambda _place: (5, 1_000))
        until(stage)
    stage.close()


def test_a_store_that_a_roll_back_has_left_ahead_is_replaced(disk: Disk) -> None:
    holding(disk.place, 4)
    stage = index(disk)
    stage.adopt({PLACE: 5}, log)
    assert disk.opening.wait(SECONDS)
    stage.adopt({PLACE: 2}, log)
    disk.may_open.set()
    assert until(stage) == {PLACE: 0}
    assert disk.place.with_name("shard-000.aside").exists()
    stage.close()


@pytest.mark.parametrize(
    ("error", "match"),
    [
        (OSError("no space left"), "no space left. Check the disk's space"),
        (PermissionError("denied"), "denied. Check the disk's space"),
    ],
)
def test_what_goes_wrong_meanwhile_ends_the_stage(disk: Disk, error: Exception, match: str) -> None:
    disk.error = error
    disk.may_open.set()
    stage = index(disk)
    with pytest.raises(StageError, match=match):  # noqa: PT012 -- in whichever it is noticed
        stage.adopt({PLACE: 0}, log)
        until(stage)
    stage.close()


class Filtering(Disk):
    """A store of several runs, whose filters are read only as far as the test lets it."""

    def __init__(self, state_dir: Path) -> None:
        super().__init__(state_dir)
        self.may_open.set()
        self.read = threading.Event()
        self.may_go_on = threading.Event()
        store = BandStore(self.place, HEADER, options=StoreOptions(run_documents=100))
        for offset in range(1, 4):
            fill(store, offset, 100)
        store.close()

    def open(
        self, shard: int, on_cells: Callable[[int, int], None] = lambda _count, _total: None
    ) -> BandStore:
        def watched(count: int, total: int) -> None:
            on_cells(count, total)
            self.read.set()
            assert self.may_go_on.wait(SECONDS)

        return super().open(shard, watched)


@pytest.fixture
def filtering(tmp_path: Path) -> Filtering:
    return Filtering(tmp_path / "state")


def test_filters_that_are_read_move_what_the_watchdog_looks_at(filtering: Filtering) -> None:
    stage = index(filtering)
    stage.adopt({PLACE: 9}, log)
    assert filtering.read.wait(SECONDS)
    now = 0.0
    watchdog = Watchdog(
        {"poll": 1e9, "transaction": 1e9, "progress": 1e9, "restore": 240}, lambda: now
    )
    assert stage.status().restored == 200
    watchdog.look({"index": Pulse(0, restored=stage.status().restored)})
    filtering.may_go_on.set()
    assert until(stage) == {PLACE: 3}
    assert stage.status().restored == 400
    now = 241.0
    assert not watchdog.look({"index": Pulse(0, restored=stage.status().restored)})
    stage.close()


def test_filters_that_nobody_waits_for_are_not_all_read(filtering: Filtering) -> None:
    stage = index(filtering)
    stage.adopt({PLACE: 9}, log)
    assert filtering.read.wait(SECONDS)
    stage.adopt({}, log)
    filtering.may_go_on.set()
    stage.close()  # It waits for the opening to end.
    assert stage.status().restored == 200
    BandStore(filtering.place, HEADER).close()  # nobody holds it


def test_the_reading_of_filters_is_told_every_ten_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    now = 0.0
    progress = RestoreProgress(3, lambda: now)
    for _ in range(25):
        now += 1
        progress.cells(1_000, 50_000)
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "shard 3: reading filters, of 10000 of 50000 cells (20 %)",
        "shard 3: reading filters, of 20000 of 50000 cells (40 %)",
    ]


class Slow(Repository):
    """Snapshots of which only a first chunk arrives until the fetch is given up."""

    def __init__(self, url: str) -> None:
        super().__init__(url, "app")
        self.fetching = threading.Event()
        self.places: list[Path] = []

    def shard(self, shard: int) -> ShardSnapshots:
        return SlowSnapshots(self, super().shard(shard).place, shard)


class SlowSnapshots(ShardSnapshots):
    def __init__(self, repository: Slow, place: str, shard: int) -> None:
        super().__init__(Storage.at(place, {}), shard)
        self._repository = repository

    def fetch(
        self,
        manifest: Manifest,
        directory: Path,
        *,
        on_bytes: Callable[[int], None] = lambda _size: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._repository.places.append(directory)

        def first(size: int) -> None:
            on_bytes(size)
            self._repository.fetching.set()
            deadline = monotonic() + SECONDS
            while not stop():
                assert monotonic() < deadline

        super().fetch(manifest, directory, on_bytes=first, stop=stop)


def shipped(disk: Disk, url: str, offset: int) -> None:
    """Ship a store, and lose it."""
    disk.may_open.set()
    shipper = Shipper(
        Repository(url, "app"),
        lambda _shard: HEADER,
        shards=1,
        every_seconds=1e-6,
        keep=3,
        verification=Verification(SECONDS),
        background=False,
    )
    lost = BandStore(disk.place.with_name("lost"), HEADER)
    lost.apply(None, offset=offset, documents=0)
    shipper.ship_if_due(lost, 0)
    shipper.ship_if_due(lost, 0)
    lost.close()


@pytest.mark.parametrize("end", ["taken away", "closed"])
def test_a_fetch_that_nobody_waits_for_leaves_nothing(disk: Disk, end: str, tmp_path: Path) -> None:
    url = str(tmp_path / "kept")
    shipped(disk, url, 6)
    slow = Slow(url)
    stage = index(disk, slow)
    stage.adopt({PLACE: 9}, log)
    assert slow.fetching.wait(SECONDS)
    assert stage.status().restoring[0].bytes_done > 0
    assert stage.status().restored > 0
    if end == "taken away":
        stage.adopt({}, log)
    stage.close()
    (place,) = slow.places
    assert not place.exists()
    after = BandStore(disk.place, HEADER)
    assert after.offset == 0
    after.close()


def test_a_fetched_shard_starts_at_its_snapshot(disk: Disk, tmp_path: Path) -> None:
    url = str(tmp_path / "kept")
    shipped(disk, url, 6)
    stage = index(disk, Repository(url, "app"))
    assert stage.adopt({PLACE: 9}, log) == {}
    assert until(stage) == {PLACE: 6}
    moved = stage.status().restored
    assert moved > 0
    stage.close()
    assert stage.status().restored == moved


def test_a_snapshot_that_is_ahead_of_the_group_is_not_taken(disk: Disk, tmp_path: Path) -> None:
    url = str(tmp_path / "kept")
    shipped(disk, url, 6)
    stage = index(disk, Repository(url, "app"))
    stage.adopt({PLACE: 5}, log)
    assert until(stage) == {PLACE: 0}
    stage.close()


def test_a_worker_ships_without_holding_up_its_stage(disk: Disk, tmp_path: Path) -> None:
    shipper = Shipper(
        Repository(str(tmp_path / "kept"), "app"),
        lambda _shard: HEADER,
        shards=1,
        every_seconds=1e-6,
        keep=3,
        verification=Verification(SECONDS),
    )
    snapshots = Repository(str(tmp_path / "kept"), "app").shard(0)
    store = BandStore(disk.place, HEADER)
    for offset in (3, 5):
        store.apply(None, offset=offset, documents=0)
        deadline = monotonic() + SECONDS
        while [m.offset for m in snapshots.manifests()][:1] != [offset]:
            shipper.ship_if_due(store, 0)
            assert monotonic() < deadline
    shipper.close()
    store.close()
    assert not disk.place.with_name("shard-000.checkpoint").exists()


def test_the_loop_goes_on_polling_and_reads_once_the_store_is_open(disk: Disk) -> None:
    bus = MemoryBus()
    bus.create_topic("app.shards", 1)
    bus.commit_offsets("g", {PLACE: 0})
    bus.append(Outgoing("app.shards", 0, None, encode(replace(FINGERPRINTS, layout="other"))))
    loop = Loop(index(disk), bus.join("g", ["app.shards"], "one"))
    for _ in range(20):
        loop.step(0)
    assert disk.opening.wait(SECONDS)
    assert loop.lag() == {PLACE: 1}
    assert loop.behind == 0  # The watch over restores sees to it; progress can't be expected.
    disk.may_open.set()
    deadline = monotonic() + SECONDS
    with pytest.raises(FrameError):  # noqa: PT012 -- by and by
        while monotonic() < deadline:
            loop.step(0)
    loop.close()
