"""What is shipped can be fetched, whole; what is damaged is seen; what is old goes."""

from __future__ import annotations

import os
from pathlib import Path
from time import time
from uuid import uuid4

import msgspec
import pytest

from tests.worker.index.snapshots.published import FILES, HEADER, Files, manifest, publish
from worker.index.snapshots.manifest import MOST_BYTES, FileEntry, Manifest, ManifestError, decode
from worker.index.snapshots.repository import (
    Interrupted,
    Repository,
    ShardSnapshots,
    SnapshotDamaged,
)
from worker.index.snapshots.storage import Storage
from worker.settings.errors import ConfigurationError


@pytest.fixture(params=["directory", "object store"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """Give an empty directory: on disk, or of fsspec's file system in memory."""
    url = str(tmp_path / "kept") if request.param == "directory" else f"memory://{uuid4().hex}"
    return Storage.at(url, {}).below("app").below("shard-003")


@pytest.fixture
def snapshots(storage: Storage) -> ShardSnapshots:
    """Give the snapshots of a shard that has none."""
    return ShardSnapshots(storage, 3)


def content(directory: Path) -> Files:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_what_was_published_comes_back(snapshots: ShardSnapshots, tmp_path: Path) -> None:
    published = publish(snapshots, tmp_path, 7, FILES)
    assert snapshots.manifests() == [published]
    assert published.size_bytes == 5_010
    arrived: list[int] = []
    snapshots.fetch(published, tmp_path / "back", on_bytes=arrived.append)
    assert content(tmp_path / "back") == FILES
    assert sum(arrived) == 5_010


def test_the_newest_comes_first_whatever_the_number_of_digits(
    snapshots: ShardSnapshots, tmp_path: Path
) -> None:
    for offset in (99, 5, 1_000):
        publish(snapshots, tmp_path, offset, FILES)
    assert [found.offset for found in snapshots.manifests()] == [1_000, 99, 5]


def test_a_file_that_is_there_is_not_shipped_again(tmp_path: Path) -> None:
    snapshots = Repository(str(tmp_path / "kept"), "app").shard(3)
    publish(snapshots, tmp_path, 1, FILES)
    before = {path: path.stat().st_ino for path in (Path(snapshots.place) / "files").iterdir()}
    publish(snapshots, tmp_path, 2, {**FILES, "000002.sst": b"b"})
    after = {path: path.stat().st_ino for path in (Path(snapshots.place) / "files").iterdir()}
    assert before.items() < after.items()
    assert len(after) == len(before) + 1


def damage(snapshots: ShardSnapshots, data: bytes | None) -> None:
    """Replace the large file's content, or take it away."""
    (large,) = [
        path for path in (Path(snapshots.place) / "files").iterdir() if path.stat().st_size == 5_000
    ]
    if data is None:
        large.unlink()
    else:
        large.write_bytes(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"a" * 4_999 + b"b", "damaged"), (b"a" * 4_999, "damaged"), (None, "gone")],
    ids=["flipped", "cut", "gone"],
)
def test_a_damaged_file_is_never_taken_and_is_shipped_again(
    tmp_path: Path, data: bytes | None, why: str
) -> None:
    snapshots = Repository(str(tmp_path / "kept"), "app").shard(3)
    published = publish(snapshots, tmp_path, 1, FILES)
    damage(snapshots, data)
    assert [file.name for file in snapshots.damaged(published.files)] == ["000001.sst"]
    with pytest.raises(SnapshotDamaged, match=f"000001.sst .* is {why}"):
        snapshots.fetch(published, tmp_path / "back")
    assert snapshots.missing([published]) == {published.name: ["000001.sst"]}
    again = publish(snapshots, tmp_path, 2, FILES)
    snapshots.fetch(again, tmp_path / "again")
    assert content(tmp_path / "again") == FILES


def test_small_files_lie_in_the_manifest_and_no_snapshot_depends_on_anothers(
    tmp_path: Path,
) -> None:
    snapshots = Repository(str(tmp_path / "kept"), "app").shard(3)
    small = {"CURRENT": b"MANIFEST-000005\n", "empty": b""}
    published = publish(snapshots, tmp_path, 1, {**small, "own.sst": b"table"})
    assert len(list((Path(snapshots.place) / "files").iterdir())) == 1
    (found,) = snapshots.manifests()
    assert found == published
    snapshots.fetch(found, tmp_path / "back")
    assert content(tmp_path / "back") == {**small, "own.sst": b"table"}
    current = next(file for file in published.files if file.name == "CURRENT")
    other = FileEntry(current.name, current.size, current.sha256, b"MANIFEST-000006\n")
    broken = manifest(1, [other])
    assert snapshots.damaged(broken.files) == [other]
    with pytest.raises(SnapshotDamaged, match="CURRENT"):
        snapshots.fetch(broken, tmp_path / "again")


def test_a_fetch_can_be_interrupted(snapshots: ShardSnapshots, tmp_path: Path) -> None:
    published = publish(snapshots, tmp_path, 1, FILES)
    with pytest.raises(Interrupted):
        snapshots.fetch(published, tmp_path / "back", stop=lambda: True)


def test_only_the_newest_are_kept_and_young_files_of_no_manifest_stay(tmp_path: Path) -> None:
    snapshots = Repository(str(tmp_path / "kept"), "app").shard(3)
    for offset in range(1, 6):
        publish(snapshots, tmp_path, offset, {**FILES, "own.sst": b"%d" % offset})
    files = Path(snapshots.place) / "files"
    (files / "of-another-worker").write_bytes(b"not named yet")
    snapshots.retire(HEADER, keep=2)
    oldest = snapshots.oldest(HEADER, keep=2)
    assert oldest is not None
    assert oldest.offset == 4
    assert [found.offset for found in snapshots.manifests()] == [5, 4]
    tables = sum(name.endswith(".sst") for name in FILES)
    assert len(list(files.iterdir())) == tables + 5 + 1
    for path in files.iterdir():
        os.utime(path, (time() - 3_700, time() - 3_700))
    snapshots.retire(HEADER, keep=2)
    assert len(list(files.iterdir())) == tables + 2


def test_what_misses_a_file_counts_for_nothing(tmp_path: Path) -> None:
    snapshots = Repository(str(tmp_path / "kept"), "app").shard(3)
    for offset in (1, 2):
        publish(snapshots, tmp_path, offset, {"a": b"%d" % offset})
    publish(snapshots, tmp_path, 3, FILES)
    damage(snapshots, None)
    snapshots.retire(HEADER, keep=2)
    oldest = snapshots.oldest(HEADER, keep=2)
    assert oldest is not None
    assert oldest.offset == 1


def test_snapshots_of_another_index_are_neither_counted_nor_deleted(
    snapshots: ShardSnapshots, tmp_path: Path
) -> None:
    for offset in (8, 9):
        publish(snapshots, tmp_path, offset, FILES, log="another")
    publish(snapshots, tmp_path, 1, FILES)
    snapshots.retire(HEADER, keep=1)
    oldest = snapshots.oldest(HEADER, keep=1)
    assert oldest is not None
    assert oldest.offset == 1
    assert len(snapshots.manifests()) == 3


def test_a_manifest_that_cannot_be_read_is_named_and_holds_back_deletions(tmp_path: Path) -> None:
    snapshots = Repository(str(tmp_path / "kept"), "app").shard(3)
    publish(snapshots, tmp_path, 1, {"a.sst": b"1"})
    published = publish(snapshots, tmp_path, 2, {"a.sst": b"2"})
    newest = Path(snapshots.place) / "snapshots" / published.name
    newest.write_bytes(newest.read_bytes()[:50])
    bad: list[str] = []
    assert [m.offset for m in snapshots.manifests(lambda name, _: bad.append(name))] == [1]
    assert bad == [newest.name]
    for path in (Path(snapshots.place) / "files").iterdir():
        os.utime(path, (0, 0))
    snapshots.retire(HEADER, keep=1)
    assert len(list((Path(snapshots.place) / "files").iterdir())) == 2


DIGEST = "0" * 64


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": 1}, "format 1, but this version reads 2"),
        ({"files": [FileEntry("../x", 1, DIGEST)]}, "bad file name"),
        ({"files": [FileEntry("..", 1, DIGEST)]}, "bad file name"),
        ({"files": [FileEntry("x", 1, "../../etc/passwd")]}, "or digest"),
        ({"files": [FileEntry("x\0", 1, DIGEST)]}, "bad file name"),
        ({"files": [FileEntry("x" * 201, 1, DIGEST)]}, "bad file name"),
        ({"files": [FileEntry("", 1, DIGEST)]}, "bad file name"),
        ({"files": [FileEntry("x", -1, DIGEST)]}, "bad size of x: -1"),
        ({"files": [FileEntry("x", 1 << 63, DIGEST)]}, "bad size of x"),
        ({"files": [FileEntry("x", 1 << 40, DIGEST, b"y")]}, "bad size of x"),
        ({"files": [FileEntry("x", 1, DIGEST)] * 2}, "'x' is there twice"),
        ({"offset": -1}, "bad offset: -1"),
        ({"documents": -1}, "bad documents"),
        ({"shard": 1 << 62}, "bad shard"),
        ({"created": 1e300}, "bad time"),
    ],
)
def test_manifests_that_are_refused(change: dict[str, object], why: str) -> None:
    good = manifest(1, [FileEntry("x", 1, DIGEST)])
    assert decode(good.encode()) == good
    fields = {name: getattr(good, name) for name in good.__struct_fields__}
    bad = Manifest(**{**fields, **change})
    with pytest.raises(ManifestError, match=why):
        decode(bad.encode())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"format": "1"}',
        b'{"x": ' + b"[" * 100_000,
        b'{"header": {"\xff": 1}}',
        b" " * MOST_BYTES + b"{}",
    ],
    ids=["empty", "list", "bytes", "types", "deep", "utf-8", "huge"],
)
def test_what_is_no_manifest_is_named_and_passed_over(
    storage: Storage, snapshots: ShardSnapshots, tmp_path: Path, data: bytes
) -> None:
    good = publish(snapshots, tmp_path, 1, FILES)
    storage.write("snapshots/99999999999999999999-x.json", data)
    bad: list[tuple[str, str]] = []
    assert snapshots.manifests(lambda name, why: bad.append((name, why))) == [good]
    ((name, why),) = bad
    assert name == "99999999999999999999-x.json"
    assert why.startswith("not a manifest: ")


def test_a_manifest_of_another_shard_is_passed_over(
    storage: Storage, snapshots: ShardSnapshots, tmp_path: Path
) -> None:
    strange = msgspec.structs.replace(publish(snapshots, tmp_path, 1, FILES), shard=4)
    storage.write(f"snapshots/{strange.name}", strange.encode())
    bad: list[str] = []
    assert snapshots.manifests(lambda _, why: bad.append(why)) == []
    assert bad == ["of shard 4, not 3"]


def test_a_place_that_cannot_be_is_a_wrong_setting() -> None:
    with pytest.raises(ConfigurationError, match=r"index\.snapshots\.url: nonsense://x: "):
        Repository("nonsense://x", "app")
