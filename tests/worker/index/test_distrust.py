"""Snapshots that must not be restored count for nothing; names belong to one log."""

from __future__ import annotations

from pathlib import Path
from time import time

from worker.index.keyspace import StoreHeader
from worker.index.snapshots.manifest import FileEntry, Manifest
from worker.index.snapshots.repository import ShardSnapshots
from worker.index.snapshots.storage import Storage

HEADER: StoreHeader = {"log": "one"}


def snapshots_at(place: Path) -> ShardSnapshots:
    return ShardSnapshots(Storage.at(str(place), {}), 0)


def publish(
    snapshots: ShardSnapshots, directory: Path, offset: int, header: StoreHeader = HEADER
) -> Manifest:
    def make(files: list[FileEntry]) -> Manifest:
        return Manifest(
            shard=0,
            offset=offset,
            documents=offset,
            created=time(),
            header=header,
            files=files,
        )

    directory.mkdir(parents=True)
    (directory / "own").write_bytes(b"%d" % offset)
    (directory / "shared").write_bytes(b"x")
    return snapshots.publish(directory, make)


def test_distrusted_snapshots_do_not_count_and_good_ones_stay_for_them(tmp_path: Path) -> None:
    snapshots = snapshots_at(tmp_path / "kept")
    made = [publish(snapshots, tmp_path / f"{offset}", offset) for offset in range(1, 6)]
    snapshots.distrust(made[4].name, "a test")
    own = next(file for file in made[3].files if file.name == "own")
    snapshots.distrust(own.sha256, "a test")
    assert snapshots.distrusted(made).keys() == {made[3].name, made[4].name}
    snapshots.retire(HEADER, keep=2)
    oldest = snapshots.oldest(HEADER, keep=2)
    assert oldest is not None
    assert oldest.offset == 2  # so the log is trimmed no further
    assert [found.offset for found in snapshots.manifests()] == [5, 4, 3, 2]


def test_a_snapshot_made_anew_at_the_same_offset_is_trusted_again(tmp_path: Path) -> None:
    snapshots = snapshots_at(tmp_path / "kept")
    snapshots.distrust(publish(snapshots, tmp_path / "a", 3).name, "a test")
    again = publish(snapshots, tmp_path / "b", 3)
    assert snapshots.distrusted([again]) == {}


def test_two_logs_in_one_place_overwrite_nothing_of_each_other(tmp_path: Path) -> None:
    snapshots = snapshots_at(tmp_path / "kept")
    other: StoreHeader = {"log": "two"}
    for offset in (1, 2, 3):
        publish(snapshots, tmp_path / f"one-{offset}", offset)
    for offset in (2, 3, 4):
        publish(snapshots, tmp_path / f"two-{offset}", offset, other)
    found = snapshots.manifests()
    assert [m.offset for m in found] == [4, 3, 3, 2, 2, 1]
    snapshots.retire(other, keep=1)
    left = [(m.offset, m.header["log"]) for m in snapshots.manifests()]
    assert sorted(left) == [(1, "one"), (2, "one"), (3, "one"), (4, "two")]


def test_manifests_under_their_old_names_are_read_and_retired(tmp_path: Path) -> None:
    place = tmp_path / "kept" / "snapshots"
    snapshots = snapshots_at(tmp_path / "kept")
    for offset in (1, 2):
        name = publish(snapshots, tmp_path / f"{offset}", offset).name
        (place / name).rename(place / f"{offset:020d}.json")
    publish(snapshots, tmp_path / "3", 3)
    assert [found.offset for found in snapshots.manifests()] == [3, 2, 1]
    snapshots.retire(HEADER, keep=2)
    assert [found.offset for found in snapshots.manifests()] == [3, 2]
