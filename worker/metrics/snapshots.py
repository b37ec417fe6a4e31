"""The metrics of the snapshot shipper."""

from __future__ import annotations

from worker.index.snapshots import Damage, Manifest, ShipperEvents
from worker.metrics.instruments import Instruments

__all__ = ["SnapshotMetrics"]


class SnapshotMetrics(ShipperEvents):
    """Counts snapshots, and exports the newest one that this worker has shipped of each shard."""

    def __init__(self, instruments: Instruments) -> None:
        """Start at zero."""
        snapshots = instruments.counter("neardup_snapshots_total")
        self._shipped = snapshots.labels("shipped")
        self._failed = snapshots.labels("failed")
        self._taken = instruments.gauge("neardup_snapshot_timestamp_seconds")
        self._offset = instruments.gauge("neardup_snapshot_offset")
        self._bytes = instruments.gauge("neardup_snapshot_bytes")
        damaged = instruments.counter("neardup_snapshot_damaged_files_total")
        self._repairable = damaged.labels("yes")
        self._lost = damaged.labels("no")

    def shipped(self, manifest: Manifest) -> None:
        """Count a complete snapshot, and export it as its shard's newest."""
        shard = str(manifest.shard)
        self._shipped.inc()
        self._taken.labels(shard).set(manifest.created)
        self._offset.labels(shard).set(manifest.offset)
        self._bytes.labels(shard).set(manifest.size_bytes)

    def failed(self, shard: int) -> None:  # noqa: ARG002 -- not a label of the counter
        """Count a snapshot that could not be shipped."""
        self._failed.inc()

    def damaged(self, shard: int, damage: Damage) -> None:  # noqa: ARG002 -- as above
        """Count files of earlier snapshots that were found damaged or missing."""
        self._repairable.inc(len(damage.repairable))
        self._lost.inc(len(damage.lost))
