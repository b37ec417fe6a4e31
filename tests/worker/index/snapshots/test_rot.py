"""Blocks that rot: never shipped, never restored twice, and the log is the last resort."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from time import time

import pytest

from localkafka.broker import wait_until
from tests.support.breadth import slow
from tests.support.embedded import by_id
from tests.support.filling import fill
from tests.worker.index.snapshot_run import SHARDS, SnapshotRun, lose_one
from worker.bus import TopicPartition
from worker.index.directory import ShardDirectories, beside
from worker.index.errors import Unrecoverable
from worker.index.keyspace import StoreHeader
from worker.index.owner import OwnedShards
from worker.index.recovery import LogRange, Recovery
from worker.index.restore_progress import RestoreProgress
from worker.index.snapshots.manifest import FileEntry, Manifest
from worker.index.snapshots.repository import Repository, ShardSnapshots
from worker.index.snapshots.shipper import Shipper
from worker.index.snapshots.soundness import Verification, rotten
from worker.index.store import BandStore
from worker.stages.base import StageError

SECONDS = 60.0

pytestmark = pytest.mark.timeout(120)


def rot(directory: Path) -> list[Path]:
    """Flip bits in the tables of a store as a disk does: in place, and nobody is told."""
    tables = sorted(directory.glob("*.sst"))
    for table in tables:
        with table.open("r+b") as file:
            file.seek(100)
            flipped = bytes(byte ^ 0x10 for byte in file.read(8))
            file.seek(100)
            file.write(flipped)
    return tables


def snapshots_of(run: SnapshotRun, shard: int) -> ShardSnapshots:
    return run.embedded.application.repository().shard(shard)  # type: ignore[union-attr]


def is_sound(run: SnapshotRun, shard: int, to: Path) -> bool:
    """Tell whether the newest snapshot that may be restored is sound."""
    snapshots = snapshots_of(run, shard)
    found = snapshots.manifests()
    trusted = [m for m in found if m.name not in snapshots.distrusted(found)]
    snapshots.fetch(trusted[0], to)
    return not rotten(sorted(to.glob("*.sst")))


@pytest.mark.parametrize("trimmed", [True, slow(False)])
def test_rot_in_a_live_store_is_not_shipped_and_the_store_is_replaced(
    tmp_path: Path,
    expected: dict[str, object],
    caplog: pytest.LogCaptureFixture,
    *,
    trimmed: bool,
) -> None:
    run = SnapshotRun(tmp_path, trim_log=trimmed)
    run.feed_some(0, 40)
    run.snapshot()
    run.feed_some(40, 60)
    for store in run.index.stores().values():
        store.flush()
    for shard in range(SHARDS):
        assert len(rot(run.store_path(shard))) >= 2
    run.snapshot()  # before any block is read
    assert all(is_sound(run, shard, tmp_path / f"now-{shard}") for shard in range(SHARDS))
    for first in range(60, 100, 10):  # more often than `keep`
        run.feed_some(first, first + 10)
        run.snapshot()
    assert all(is_sound(run, shard, tmp_path / f"then-{shard}") for shard in range(SHARDS))
    run.close()
    lose_one(run)
    run.open()
    run.feed_some(100, 120)
    assert by_id(run.finish()) == expected
    assert any("Corruption" in r.getMessage() for r in caplog.records)
    assert run.store_path(0).with_name("shard-000.aside").exists()
    run.close()


def ship_as_it_is(run: SnapshotRun, shard: int, offset: int, documents: int) -> None:
    """Ship a stopped worker's store, as versions did that looked at nothing."""
    header = run.embedded.application.directories.header(shard)

    def make(files: list[FileEntry]) -> Manifest:
        return Manifest(
            shard=shard,
            offset=offset,
            documents=documents,
            created=time(),
            header=header,
            files=files,
        )

    copy = run.store_path(shard).with_name("copy")
    shutil.copytree(run.store_path(shard), copy)
    for log in copy.glob("L*"):
        log.unlink()
    snapshots_of(run, shard).publish(copy, make)
    shutil.rmtree(copy)


def reached(run: SnapshotRun) -> list[int]:
    return [run.index.stores()[shard].offset for shard in range(SHARDS)]


def spoil_tables(run: SnapshotRun, shard: int) -> None:
    rot(run.store_path(shard))


def spoil_records(run: SnapshotRun, shard: int) -> None:
    """Make buckets name documents that are not there: no checksum tells."""
    store = run.embedded.application.directories.open(shard)
    for key in list(store.db.keys()):
        if isinstance(key, bytes) and key[0] == 0xFE:
            store.db.delete(key)
    store.close()


@pytest.mark.parametrize("spoil", [spoil_tables, slow(spoil_records)])
@pytest.mark.parametrize("with_good_one", [True, slow(False)])
def test_snapshots_that_were_shipped_rotten_are_left_for_a_good_one_or_for_the_log(
    tmp_path: Path,
    expected: dict[str, object],
    spoil: Callable[[SnapshotRun, int], None],
    *,
    with_good_one: bool,
) -> None:
    run = SnapshotRun(tmp_path)
    run.feed_some(0, 30)
    if with_good_one:
        run.snapshot()
    run.feed_some(30, 80)
    offsets = reached(run)
    run.close()
    for shard, offset in enumerate(offsets):
        spoil(run, shard)
        ship_as_it_is(run, shard, offset, 80)
        shutil.rmtree(run.store_path(shard))
    run.open()
    run.feed_some(80, 120)
    assert by_id(run.finish()) == expected
    for shard, offset in enumerate(offsets):
        snapshots = snapshots_of(run, shard)
        bad = [m for m in snapshots.manifests() if m.offset == offset]
        assert snapshots.distrusted(bad).keys() == {m.name for m in bad}
    run.prove(tmp_path)
    run.close()


def test_without_a_good_snapshot_or_a_log_the_message_says_what_was_tried(tmp_path: Path) -> None:
    run = SnapshotRun(tmp_path, trim_log=True)
    for first in (0, 20, 40):
        run.feed_some(first, first + 20)
        run.snapshot()
    assert run.log_start
    offsets = reached(run)
    run.close()
    for shard, offset in enumerate(offsets):
        shutil.rmtree(Path(snapshots_of(run, shard).place))
        spoil_tables(run, shard)
        ship_as_it_is(run, shard, offset, 60)
        shutil.rmtree(run.store_path(shard))
    run.open()
    with pytest.raises(
        StageError, match=r"no good snapshot in .*kept; at offset \d+: .*sst corrupt when shipped"
    ):
        run.finish()
    run.open()
    with pytest.raises(StageError, match=r"at offset \d+: .*sst corrupt when shipped"):
        run.finish()


def test_a_snapshot_that_does_not_open_is_fetched_only_once(
    tmp_path: Path, expected: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    run = SnapshotRun(tmp_path)
    run.feed_some(0, 60)
    offsets = reached(run)
    run.close()
    for shard, offset in enumerate(offsets):
        (manifest,) = run.store_path(shard).glob("MANIFEST-*")
        data = bytearray(manifest.read_bytes())
        data[10] ^= 1
        manifest.write_bytes(data)
        ship_as_it_is(run, shard, offset, 60)
    for _ in range(2):
        shutil.rmtree(run.store_path(0).parent)
        caplog.clear()
        caplog.set_level("INFO")
        run.open()
        run.finish()
        fetches = ["fetching the snapshot" in r.getMessage() for r in caplog.records]
        run.close()
    assert not any(fetches)
    run.open()
    run.feed_some(60, 120)
    assert by_id(run.finish()) == expected
    run.close()


def test_a_live_store_whose_manifest_is_rotten_is_not_shipped(
    tmp_path: Path, expected: dict[str, object]
) -> None:
    run = SnapshotRun(tmp_path)
    run.feed_some(0, 60)
    for shard in range(SHARDS):
        (manifest,) = run.store_path(shard).glob("MANIFEST-*")
        with manifest.open("r+b") as file:
            file.seek(10)
            file.write(b"\xa5\xa5")
    run.snapshot()
    assert not any(snapshots_of(run, shard).manifests() for shard in range(SHARDS))
    run.feed_some(60, 120)
    assert by_id(run.finish()) == expected
    run.close()


def test_rot_that_another_worker_found_in_a_snapshot_is_looked_for_here(tmp_path: Path) -> None:
    run = SnapshotRun(tmp_path)
    run.feed_some(0, 60)
    run.snapshot()
    snapshots = snapshots_of(run, 0)
    (manifest,) = snapshots.manifests()
    table = next(file for file in manifest.files if file.name.endswith(".sst"))
    snapshots.distrust(table.sha256, "a test")
    run.feed_some(60, 80)
    run.snapshot()
    assert snapshots.manifests() == [manifest]
    run.snapshot()
    assert run.store_path(0).with_name("shard-000.aside").exists()
    run.close()


HEADER: StoreHeader = {"log": "one"}


def test_the_stage_hears_of_rot_that_the_shipping_thread_has_found(tmp_path: Path) -> None:
    directories = ShardDirectories(tmp_path / "state", lambda _: HEADER)
    path = directories.path(0)
    place = TopicPartition("shards", 0)
    repository = Repository(str(tmp_path / "kept"), "app")
    recovery = Recovery(directories, repository)
    shipper = Shipper(
        repository,
        lambda _: HEADER,
        shards=1,
        every_seconds=1e-6,
        keep=3,
        verification=Verification(SECONDS),
    )
    shards = OwnedShards(recovery, directories, shipper, background=True)

    def started() -> int:
        return shards.started().get(place, -1)

    def shipped() -> bool:
        shards.idle()
        return bool(repository.shard(0).manifests())

    def is_replaced() -> bool:
        shards.idle()
        return place in shards.opening

    shards.adopt({place: 100}, lambda _: (0, 100))
    wait_until(lambda: started() == 0, SECONDS, "an empty store")
    for offset in (5, 6):
        store = shards.owned[place].store
        fill(store, offset, 300)
        store.flush()
        if offset == 5:
            wait_until(shipped, SECONDS, "a snapshot")
    rot(path)
    wait_until(is_replaced, SECONDS, "a new store")
    wait_until(lambda: started() == 5, SECONDS, "the snapshot's store")
    assert [found.offset for found in repository.shard(0).manifests()] == [5]
    assert not beside(beside(path, "checkpoint"), "tables").exists()
    shards.close()


def test_a_restore_that_goes_round_in_circles_ends_with_a_message(tmp_path: Path) -> None:
    directories = ShardDirectories(tmp_path, lambda _: HEADER)
    recovery = Recovery(directories)

    def opened() -> BandStore:
        return recovery.open(0, LogRange(0, 100, 100), RestoreProgress(0), lambda: False)

    def prove_damaged(store: BandStore, offset: int) -> None:
        recovery.damaged(0, offset, f"{store.path}: a test")
        store.close(flush=False)
        directories.put_aside(0, "a test")

    for offset in (7, 7, 9, 9):
        prove_damaged(opened(), offset)
    prove_damaged(opened(), 3)
    with pytest.raises(
        Unrecoverable, match=r"no progress: no store got past offset 9; tried .*log"
    ):
        opened()


def test_rot_anywhere_in_what_is_stored_is_found_and_nothing_is_touched(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", HEADER)
    fill(store, 3, 3_000)
    store.close()
    tables = sorted((tmp_path / "s").glob("*.sst"))
    before = {path: path.read_bytes() for path in (tmp_path / "s").iterdir()}
    assert rotten(tables) == {}
    assert {path: path.read_bytes() for path in (tmp_path / "s").iterdir()} == before
    table = max(tables, key=lambda path: path.stat().st_size)
    whole = before[table]
    # Behind the data come a filter, which decides nothing, an index, and the footer.
    places = [*range(0, int(0.8 * len(whole)), len(whole) // 30), len(whole) - 10]
    for place in places:
        flipped = bytearray(whole)
        flipped[place] ^= 0x10
        table.write_bytes(flipped)
        assert list(rotten(tables)) == [table.name], place
    for cut in (len(whole) - 1, 20, 0):
        table.write_bytes(whole[:cut])
        assert list(rotten(tables)) == [table.name], cut
    table.unlink()
    table.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError, match="No such file"):
        rotten(tables)
