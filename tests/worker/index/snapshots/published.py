"""Snapshots of shard 3 that tests publish, of a few small files."""

from __future__ import annotations

from pathlib import Path
from time import time
from uuid import uuid4

from worker.index.snapshots.manifest import FileEntry, Manifest
from worker.index.snapshots.repository import ShardSnapshots

HEADER: dict[str, str | int | float | bool] = {
    "bands": 18,
    "log": "x",
    "absorb": 0.95,
    "nfkc": True,
}
Files = dict[str, bytes]

FILES = {"CURRENT": b"MANIFEST-1", "000001.sst": b"a" * 5_000, "empty.log": b""}


def checkpoint(directory: Path, files: Files) -> Path:
    directory.mkdir()
    for name, data in files.items():
        (directory / name).write_bytes(data)
    return directory


def manifest(offset: int, files: list[FileEntry], **more: str) -> Manifest:
    return Manifest(
        shard=3,
        offset=offset,
        documents=offset * 10,
        created=time(),
        header={**HEADER, **more},
        files=files,
    )


def publish(
    snapshots: ShardSnapshots, tmp_path: Path, offset: int, files: Files, **more: str
) -> Manifest:
    directory = checkpoint(tmp_path / uuid4().hex, files)
    return snapshots.publish(directory, lambda entries: manifest(offset, entries, **more))
