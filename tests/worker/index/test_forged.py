"""A snapshot that was put there by someone else costs time, and stops no worker."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rocksdict import Options, Rdict

from tests.support.breadth import slow
from tests.support.embedded import by_id
from tests.worker.index.snapshot_run import SHARDS, SnapshotRun, lose_everything
from worker.index.errors import StoreDamaged
from worker.index.keyspace import HEADER, PROGRESS, pack_header
from worker.index.read_only import ReadOnlyStore
from worker.index.store import BandStore

CONFIG = "rocksdict-config.json"
Forge = Callable[[dict[str, Any], Path], None]


def replaced(manifest: dict[str, Any], name: str, content: bytes | None) -> None:
    """Put another file into a manifest under this name, or none."""
    manifest["files"] = [file for file in manifest["files"] if file["name"] != name]
    if content is not None:
        entry = {
            "name": name,
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "content": base64.b64encode(content).decode(),
        }
        manifest["files"].append(entry)


def of_another_mode(manifest: dict[str, Any], _place: Path) -> None:
    replaced(manifest, CONFIG, b'{"raw_mode":false,"prefix_extractors":{}}')


def deep(manifest: dict[str, Any], _place: Path) -> None:
    replaced(manifest, CONFIG, b"[" * 4_000)


def without_its_list_of_tables(manifest: dict[str, Any], _place: Path) -> None:
    (name,) = (f["name"] for f in manifest["files"] if f["name"].startswith("MANIFEST"))
    replaced(manifest, name, None)


def without_a_table(manifest: dict[str, Any], _place: Path) -> None:
    name = next(f["name"] for f in manifest["files"] if f["name"].endswith(".sst"))
    replaced(manifest, name, None)


def pointing_elsewhere(manifest: dict[str, Any], _place: Path) -> None:
    replaced(manifest, "CURRENT", b"../../../etc/passwd\n")


def empty(manifest: dict[str, Any], _place: Path) -> None:
    manifest["files"] = []


def a_store_of(place: Path, values: dict[bytes, bytes]) -> list[Path]:
    shutil.rmtree(place, ignore_errors=True)
    store = Rdict(str(place), Options(raw_mode=True))
    for key, value in values.items():
        store[key] = value
    store.flush()
    store.close()
    return [path for path in place.iterdir() if path.name != "LOCK"]


def swapped(manifest: dict[str, Any], files: list[Path]) -> None:
    manifest["files"] = []
    for path in files:
        replaced(manifest, path.name, path.read_bytes())


def another_index(manifest: dict[str, Any], place: Path) -> None:
    header = pack_header({**manifest["header"], "bucket_capacity": 9})
    swapped(manifest, a_store_of(place / "forged", {HEADER: header}))


def a_header_of_another_kind(manifest: dict[str, Any], place: Path) -> None:
    swapped(manifest, a_store_of(place / "forged", {HEADER: b"5"}))


def progress_of_another_length(manifest: dict[str, Any], place: Path) -> None:
    values = {HEADER: pack_header(manifest["header"]), PROGRESS: b"x" * 99}
    swapped(manifest, a_store_of(place / "forged", values))


def another_shard(manifest: dict[str, Any], _place: Path) -> None:
    manifest["shard"] = 1 - manifest["shard"]


@pytest.mark.parametrize(
    "forge",
    [
        slow(of_another_mode),
        slow(deep),
        slow(without_its_list_of_tables),
        without_a_table,
        slow(pointing_elsewhere),
        empty,
        slow(another_index),
        a_header_of_another_kind,
        slow(progress_of_another_length),
        slow(another_shard),
    ],
)
def test_every_defect_of_a_snapshot_leads_to_an_older_one(
    tmp_path: Path, expected: dict[str, object], caplog: pytest.LogCaptureFixture, forge: Forge
) -> None:
    run = SnapshotRun(tmp_path, trim_log=True)
    for first in (0, 50):
        run.feed_some(first, first + 50)
        run.snapshot()
    run.close()
    lose_everything(run)
    for shard in range(SHARDS):
        path = run.manifests(shard)[-1]
        manifest = json.loads(path.read_text())
        forge(manifest, tmp_path)
        path.write_text(json.dumps(manifest))
    caplog.set_level("INFO")
    run.open()
    run.feed_some(100, 120)
    assert by_id(run.finish()) == expected
    said = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    lines = [s for s in said if "trying an older one" in s or "can't be used" in s]
    assert len(lines) == SHARDS
    assert not any("\n" in line for line in lines)
    run.close()


def test_defects_of_all_snapshots_lead_to_the_log(
    tmp_path: Path, expected: dict[str, object]
) -> None:
    run = SnapshotRun(tmp_path)
    for first in (0, 50):
        run.feed_some(first, first + 50)
        run.snapshot()
    run.close()
    lose_everything(run)
    for shard in range(SHARDS):
        for path, forge in zip(run.manifests(shard), (of_another_mode, another_index), strict=True):
            manifest = json.loads(path.read_text())
            forge(manifest, tmp_path)
            path.write_text(json.dumps(manifest))
    run.open()
    run.feed_some(100, 120)
    assert by_id(run.finish()) == expected
    run.close()


@pytest.mark.parametrize(
    "content",
    [b'{"raw_mode":false,"prefix_extractors":{}}', b'{"raw_mode":true}', b"", b"5"],
)
def test_a_store_that_is_not_of_plain_bytes_is_never_opened(tmp_path: Path, content: bytes) -> None:
    a_store_of(tmp_path / "store", {HEADER: b"{}"})
    (tmp_path / "store" / CONFIG).write_bytes(content)
    with pytest.raises(StoreDamaged, match=CONFIG):
        BandStore(tmp_path / "store", {})
    with pytest.raises(StoreDamaged, match=CONFIG):
        ReadOnlyStore(tmp_path / "store")
