"""What rots in the repository is found while a store still has it, and is shipped again."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from tests.support.embedded import by_id
from tests.support.filling import fill
from tests.worker.index.snapshot_run import SHARDS, SnapshotRun, lose_everything
from worker.index.directory import ShardDirectories, beside
from worker.index.errors import StoreDamaged
from worker.index.keyspace import StoreHeader
from worker.index.recovery import LogRange, Recovery
from worker.index.restore_progress import RestoreProgress
from worker.index.snapshots.manifest import FileEntry, Manifest
from worker.index.snapshots.repository import Interrupted, Repository, ShardSnapshots
from worker.index.snapshots.shipper import Shipper
from worker.index.snapshots.soundness import Damage, Verification
from worker.index.snapshots.storage import Storage
from worker.index.store import BandStore
from worker.metrics import table
from worker.metrics.metrics import Metrics

HEADER: StoreHeader = {"log": "one"}
DAY = 86_400.0
NOON = 1_700_000_000.0


class Owner:
    """A shard's store, and a worker that ships it; ``now`` is the time of day."""

    def __init__(self, directory: Path, url: str) -> None:
        self.path = directory / "shard-000"
        self.store = BandStore(self.path, HEADER)
        self.repository = Repository(url, "app")
        self.snapshots = self.repository.shard(0)
        self.now = NOON
        self.trims: list[int] = []
        self.metrics = Metrics()
        self._fs, _ = fsspec.url_to_fs(url)
        self.restart()

    def restart(self) -> None:
        """Have another worker, which knows nothing but the repository."""
        self.shipper = Shipper(
            self.repository,
            lambda _: HEADER,
            shards=1,
            every_seconds=1,
            keep=2,
            verification=Verification(DAY, lambda: self.now),
            trim=self.trims.append,
            background=False,
            metrics=self.metrics,
        )

    def damaged(self) -> tuple[float | None, float | None]:
        """Return how many files were found damaged: which the store has, and has not."""
        value = self.metrics.value
        return value(table.SNAPSHOT_DAMAGED_FILES, "yes"), value(table.SNAPSHOT_DAMAGED_FILES, "no")

    def grow(self) -> None:
        """Add a table to the store."""
        fill(self.store, self.store.offset + 1, 300)
        self.store.flush()

    def merge(self) -> None:
        """Have new tables instead of all that there are."""
        self.store.db.compact_range(None, None)

    def ship(self) -> Manifest:
        self.grow()
        return self.shipper.ship_now(self.store, 0)

    def _place(self, file: FileEntry) -> str:
        return f"{self.snapshots.place}/files/{file.sha256}"

    def rot(self, file: FileEntry) -> None:
        data = bytearray(self._fs.cat_file(self._place(file)))
        data[len(data) // 3] ^= 1
        self._fs.pipe_file(self._place(file), bytes(data))

    def lose(self, file: FileEntry) -> None:
        self._fs.rm_file(self._place(file))

    def restored(self, directory: Path) -> BandStore:
        """Restore the newest snapshot on an empty disk, and nothing else."""
        empty = ShardDirectories(directory / uuid4().hex, lambda _: HEADER)
        log = LogRange(self.store.offset, self.store.offset, self.store.offset)
        recovery = Recovery(empty, self.repository)
        restored = recovery.open(0, log, RestoreProgress(0), lambda: False)
        assert not beside(empty.path(0), "aside").exists()
        return restored


@pytest.fixture(params=["directory", "object store"])
def owner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Owner]:
    """Give an owner of a shard whose repository is empty: on disk, or in memory."""
    url = str(tmp_path / "kept") if request.param == "directory" else f"memory://{uuid4().hex}"
    owner = Owner(tmp_path, url)
    yield owner
    owner.store.close()


def tables(manifest: Manifest) -> list[FileEntry]:
    return [file for file in manifest.files if file.name.endswith(".sst")]


def largest(manifest: Manifest) -> FileEntry:
    return max(tables(manifest), key=lambda file: file.size)


@pytest.mark.parametrize("spoil", [Owner.rot, Owner.lose])
def test_a_shared_file_that_is_damaged_is_shipped_again(
    owner: Owner,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    spoil: Callable[[Owner, FileEntry], None],
) -> None:
    shared = largest(owner.ship())
    owner.ship()
    spoil(owner, shared)
    owner.now += DAY
    newest = owner.ship()
    assert shared in newest.files
    assert owner.snapshots.damaged(newest.files) == []
    restored = owner.restored(tmp_path)
    assert restored.contents().buckets() == owner.store.contents().buckets()
    restored.close()
    assert owner.damaged() == (1, 0)
    assert f"{shared.name} ({shared.sha256}) is damaged or missing; the store has it" in caplog.text


def test_snapshots_that_need_a_lost_file_do_not_count(
    owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    first = owner.ship()
    owner.merge()
    second = owner.ship()
    assert owner.trims == [first.offset]
    owner.merge()
    lost = largest(second)
    assert lost not in first.files
    owner.rot(lost)
    owner.now += DAY
    third = owner.ship()
    assert owner.trims == [first.offset, first.offset]
    assert [m.offset for m in owner.snapshots.manifests()] == [third.offset, first.offset]
    assert owner.damaged() == (0, 1)
    assert f"{lost.name} (" in caplog.text
    assert f"the snapshots at offsets {second.offset} can't be restored" in caplog.text


def test_the_log_is_not_trimmed_behind_a_single_good_snapshot(owner: Owner) -> None:
    old = [owner.ship(), owner.ship()]
    assert owner.trims == [old[0].offset]
    owner.merge()
    shared = largest(old[0])
    owner.rot(shared)
    owner.now += DAY
    assert shared not in owner.ship().files
    assert owner.trims == [old[0].offset]


def test_files_are_read_back_once_in_an_interval_whoever_owns_the_shard(owner: Owner) -> None:
    shared = largest(owner.ship())
    owner.now += DAY - 1
    owner.rot(shared)
    owner.ship()
    owner.restart()
    owner.ship()
    assert owner.damaged() == (0, 0)
    owner.now += 1
    owner.restart()
    owner.ship()
    assert owner.damaged() == (1, 0)
    owner.rot(shared)
    owner.now += DAY - 1
    owner.restart()
    owner.ship()
    assert owner.damaged() == (1, 0)


def test_a_store_that_has_rotted_too_is_not_shipped_again(owner: Owner) -> None:
    shared = largest(owner.ship())
    owner.rot(shared)
    here = owner.path / shared.name
    times = here.stat()
    data = bytearray(here.read_bytes())
    data[len(data) // 3] ^= 1
    with here.open("r+b") as file:
        file.write(data)
    os.utime(here, ns=(times.st_atime_ns, times.st_mtime_ns))  # as a disk does, which tells nobody
    owner.now += DAY
    with pytest.raises(StoreDamaged, match=f"{shared.name} is not what it was"):
        owner.ship()
    assert owner.snapshots.absent([shared]) == [shared]


def test_the_first_snapshot_has_nothing_to_read_back(
    owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    owner.ship()
    assert "read back 0 files" in caplog.text
    caplog.clear()
    owner.ship()
    assert "read back" not in caplog.text


@pytest.mark.parametrize("note", [None, b"", b"\xff", b"nan", b"%f" % (NOON + 10 * DAY)])
def test_without_a_note_that_makes_sense_files_are_read_back(
    tmp_path: Path, note: bytes | None
) -> None:
    owner = Owner(tmp_path, str(tmp_path / "kept"))
    shared = largest(owner.ship())
    owner.rot(shared)
    (place,) = (Path(owner.snapshots.place) / "verified").iterdir()
    if note is None:
        place.unlink()
    else:
        place.write_bytes(note)
    owner.ship()
    assert owner.damaged() == (1, 0)
    owner.store.close()


def test_each_index_of_a_place_is_read_back_by_itself(owner: Owner) -> None:
    manifest = owner.ship()
    other: StoreHeader = {"log": "two"}
    assert owner.snapshots.verified_at(HEADER) == NOON
    assert owner.snapshots.verified_at(other) == 0
    owner.rot(largest(manifest))
    assert _verify(owner.snapshots, [], other) == Damage([], [])
    assert owner.snapshots.missing([manifest]) == {}


def _verify(
    snapshots: ShardSnapshots,
    held: Sequence[FileEntry],
    header: StoreHeader = HEADER,
    *,
    stop: Callable[[], bool] = lambda: False,
) -> Damage:
    verification = Verification(DAY, lambda: NOON + 2 * DAY)
    return verification.run_if_due(snapshots, header, held, stop=stop)


def test_a_worker_that_ends_reads_no_further_and_notes_nothing(owner: Owner) -> None:
    manifest = owner.ship()
    with pytest.raises(Interrupted):
        _verify(owner.snapshots, manifest.files, stop=lambda: True)
    assert owner.snapshots.verified_at(HEADER) == NOON


class _RetiredMeanwhile(ShardSnapshots):
    """Another worker retires all snapshots when files are about to be read."""

    def damaged(
        self, files: Sequence[FileEntry], *, stop: Callable[[], bool] = lambda: False
    ) -> list[FileEntry]:
        shutil.rmtree(Path(self.place) / "snapshots")
        shutil.rmtree(Path(self.place) / "files")
        return super().damaged(files, stop=stop)


def test_files_that_another_worker_has_retired_are_no_damage(tmp_path: Path) -> None:
    owner = Owner(tmp_path, str(tmp_path / "kept"))
    owner.ship()
    snapshots = _RetiredMeanwhile(Storage.at(owner.snapshots.place, {}), 0)
    assert _verify(snapshots, []) == Damage([], [])
    owner.store.close()


def test_a_worker_without_its_state_goes_on_after_rot_in_all_snapshots(
    tmp_path: Path, expected: dict[str, object]
) -> None:
    run = SnapshotRun(tmp_path, trim_log=True, verify_seconds=1e-6)
    for first in (0, 30):
        run.feed_some(first, first + 30)
        run.snapshot()
    repository = run.embedded.application.repository()
    assert repository is not None
    shared = 0
    for shard in range(SHARDS):
        snapshots = repository.shard(shard)
        one, two = snapshots.manifests()
        for file in set(tables(one)) & set(tables(two)):
            place = Path(snapshots.place) / "files" / file.sha256
            data = bytearray(place.read_bytes())
            data[len(data) // 3] ^= 1
            place.write_bytes(data)
            shared += 1
    assert shared >= SHARDS
    run.feed_some(60, 90)
    run.snapshot()
    assert run.log_start
    sample = run.embedded.application.metrics.value
    run.close()
    lose_everything(run)
    run.open()
    run.feed_some(90, 120)
    assert by_id(run.finish()) == expected
    assert sample(table.SNAPSHOT_DAMAGED_FILES, "yes") == shared
    assert sample(table.SNAPSHOT_DAMAGED_FILES, "no") == 0
    run.prove(tmp_path)
    run.close()
