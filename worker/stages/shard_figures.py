"""What is exported of shards: how far they are, how large, and how far back they reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.stages.base import Status
from worker.stages.ownership import StoreParts, StoreReach, StoreSize


class ShardFigures:
    """Shows exactly the shards that a worker has now, about once a second."""

    def __init__(self) -> None:
        """Start without shards."""
        self._eras: dict[int, int] = {}
        self._stalled: dict[int, float] = {}

    def status(self, metrics: Metrics, status: Status, open_shards: Iterable[int] = ()) -> None:
        """Show which shards answer and which don't yet, and those that are kept warm."""
        restored = {}
        for shard, state in status.restoring.items():
            restored[str(shard), "done"] = float(state.bytes_done)
            restored[str(shard), "total"] = float(state.bytes_total)
        remaining = {(str(shard),): 0 for shard in open_shards}
        remaining |= {(str(shard),): state.remaining for shard, state in status.restoring.items()}
        lag = {(str(shard),): lag for shard, lag in status.standby_lag.items()}
        metrics.show(table.RESTORE_BYTES, restored)
        metrics.show(table.RESTORE_REMAINING_RECORDS, remaining)
        metrics.show(table.STANDBY_LAG_RECORDS, lag)

    def stores(self, metrics: Metrics, stores: Mapping[int, StoreSize]) -> None:
        """Show open stores by shard. Call it only in the thread that uses them."""
        shown = {(str(shard),): store for shard, store in stores.items()}
        for gauge, sizes in (
            (table.INDEX_BYTES, {at: store.size_bytes() for at, store in shown.items()}),
            (table.INDEX_KEYS, {at: store.keys_estimate() for at, store in shown.items()}),
            (table.INDEX_MEMORY_BYTES, {at: store.memory_bytes() for at, store in shown.items()}),
            (
                table.INDEX_PENDING_COMPACTION_BYTES,
                {at: store.pending_compaction_bytes() for at, store in shown.items()},
            ),
        ):
            metrics.show(gauge, sizes)
        before, self._stalled = self._stalled, {n: one.stalled_seconds for n, one in stores.items()}
        for shard, seconds in self._stalled.items():
            # A store that was opened anew begins at 0.
            more = seconds - before.get(shard, 0.0)
            metrics.add(table.INDEX_STALLED_SECONDS, more if more >= 0 else seconds)
        self._parts(metrics, {n: one for n, one in stores.items() if isinstance(one, StoreParts)})
        self._reach(metrics, {n: one for n, one in stores.items() if isinstance(one, StoreReach)})

    def _parts(self, metrics: Metrics, stores: Mapping[int, StoreParts]) -> None:
        parts = {str(shard): store.parts() for shard, store in stores.items()}
        documents = {(shard,): found.documents for shard, found in parts.items()}
        metrics.show(table.INDEX_KEPT_DOCUMENTS, documents)
        metrics.show(table.INDEX_ERAS, {(shard,): found.eras for shard, found in parts.items()})
        for gauge, counts in (
            (table.INDEX_RUNS, {shard: found.runs for shard, found in parts.items()}),
            (table.INDEX_CELLS, {shard: found.cells for shard, found in parts.items()}),
        ):
            by_tier = {(shard, tier): n for shard, of in counts.items() for tier, n in of.items()}
            metrics.show(gauge, by_tier)

    def _reach(self, metrics: Metrics, stores: Mapping[int, StoreReach]) -> None:
        ages = {(str(shard),): store.oldest_seconds() for shard, store in stores.items()}
        known = {shard: age for shard, age in ages.items() if age is not None}
        metrics.show(table.INDEX_OLDEST_SECONDS, known)
        before, self._eras = self._eras, {n: one.expired_eras() for n, one in stores.items()}
        for shard, count in self._eras.items():
            # A store that was rebuilt, or came from a snapshot, has given back fewer.
            gone = max(0, count - before.get(shard, count))
            metrics.add(table.INDEX_EXPIRED_ERAS, gone)
