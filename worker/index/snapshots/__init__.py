"""Snapshots of shards: shipped to a repository, verified there, and restored."""

from __future__ import annotations

from worker.index.snapshots.manifest import FileEntry, Manifest, ManifestError
from worker.index.snapshots.repository import (
    Interrupted,
    Repository,
    ShardSnapshots,
    SnapshotDamaged,
)
from worker.index.snapshots.shipper import Shipper
from worker.index.snapshots.signing import read_key
from worker.index.snapshots.verification import Damage, Verification

__all__ = [
    "Damage",
    "FileEntry",
    "Interrupted",
    "Manifest",
    "ManifestError",
    "Repository",
    "ShardSnapshots",
    "Shipper",
    "SnapshotDamaged",
    "Verification",
    "read_key",
]
