"""Snapshots of shards: what is shipped, where it lies, and how a lost shard comes back."""

from __future__ import annotations

from worker.snapshots.manifest import FileEntry, Manifest, ManifestError
from worker.snapshots.progress import RestoreProgress
from worker.snapshots.recovery import (
    Kept,
    LogRange,
    OpenStore,
    Recovery,
    Unrecoverable,
    tidy,
)
from worker.snapshots.repository import Interrupted, Repository, ShardSnapshots, SnapshotDamaged
from worker.snapshots.shipper import Shipper, ShipperEvents
from worker.snapshots.verification import Damage, Verification

__all__ = [
    "Damage",
    "FileEntry",
    "Interrupted",
    "Kept",
    "LogRange",
    "Manifest",
    "ManifestError",
    "OpenStore",
    "Recovery",
    "Repository",
    "RestoreProgress",
    "ShardSnapshots",
    "Shipper",
    "ShipperEvents",
    "SnapshotDamaged",
    "Unrecoverable",
    "Verification",
    "tidy",
]
