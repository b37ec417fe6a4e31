"""Every metric that a worker exports, with what it means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from worker import __version__
from worker.bus import TopicPartition
from worker.loop_options import LoopEvents
from worker.snapshots import Damage, Manifest, ShipperEvents
from worker.stages import IndexCounts, RestoreState, RouteCounts
from worker.store import BandStore

__all__ = ["Metrics"]

_LATENCY = (0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 15, 60, 300, 3_600)
_TRANSACTION = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.5, 5, 10)


class Metrics:
    """One worker's metrics, in a registry of their own. Labels never hold document ids."""

    def __init__(self, clock: Callable[[], float] = time) -> None:
        """Define them; ``clock`` gives seconds since the epoch."""
        self._clock = clock
        self.registry = CollectorRegistry()
        registry = self.registry
        self._documents = Counter(
            "neardup_documents",
            "Documents that left for good, by verdict.",
            ["verdict"],
            registry=registry,
        )
        for verdict in ("unique", "duplicate", "rejected"):
            self._documents.labels(verdict)
        self._rejected = Counter(
            "neardup_rejected",
            "Documents that could not be read, or not be published, by the reason's code.",
            ["reason"],
            registry=registry,
        )
        self._tombstones = Counter(
            "neardup_tombstones", "Null values passed on to both outputs.", registry=registry
        )
        self._latency = Histogram(
            "neardup_latency_seconds",
            "From a document's record timestamp to the commit of its verdict.",
            buckets=_LATENCY,
            registry=registry,
        )
        self._transactions = Counter(
            "neardup_transactions",
            "Transactions by stage and outcome: committed, aborted, unknown.",
            ["stage", "outcome"],
            registry=registry,
        )
        self._transaction_seconds = Histogram(
            "neardup_transaction_seconds",
            "From begin to the end of a transaction, by stage.",
            ["stage"],
            buckets=_TRANSACTION,
            registry=registry,
        )
        self._records = Counter(
            "neardup_records",
            "Records read, by stage (documents, or frames of many).",
            ["stage"],
            registry=registry,
        )
        self._partitions = Gauge(
            "neardup_assigned_partitions",
            "Input partitions that this worker owns, by stage.",
            ["stage"],
            registry=registry,
        )
        self._rebalances = Counter(
            "neardup_rebalances", "Assignments taken on, by stage.", ["stage"], registry=registry
        )
        self._poll = Gauge(
            "neardup_last_poll_timestamp_seconds",
            "When a stage last came round to polling.",
            ["stage"],
            registry=registry,
        )
        self._lag = Gauge(
            "neardup_consumer_lag_records",
            "Records not yet read, as of the last fetch, of the partitions that a stage owns.",
            ["stage", "topic", "partition"],
            registry=registry,
        )
        self._indexed = Counter(
            "neardup_index_documents",
            "Documents judged by shards, each once a shard: live, or replayed after a start.",
            ["kind"],
            registry=registry,
        )
        self._candidates = Counter(
            "neardup_index_candidates",
            "Earlier documents that shared a bucket, and were compared.",
            registry=registry,
        )
        self._matches = Counter(
            "neardup_index_matches",
            "Of the candidates, those at least as similar as the threshold.",
            registry=registry,
        )
        self._absorbed = Counter(
            "neardup_index_absorbed",
            "Insertions spared because an entry of the bucket is all but identical.",
            registry=registry,
        )
        self._dropped = Counter(
            "neardup_index_dropped",
            "Entries dropped, oldest first, because a bucket was full.",
            registry=registry,
        )
        self._index_bytes = Gauge(
            "neardup_index_bytes", "Size of a shard on disk.", ["shard"], registry=registry
        )
        self._index_memory = Gauge(
            "neardup_index_memory_bytes",
            "What a shard holds in memory: write buffers, open tables, its filter.",
            ["shard"],
            registry=registry,
        )
        self._cache = Gauge(
            "neardup_index_cache_bytes",
            "What the block cache holds, of all shards; it fills up to index.cache_bytes.",
            registry=registry,
        )
        self._index_keys = Gauge(
            "neardup_index_keys",
            "Estimated keys of a shard: buckets and document records.",
            ["shard"],
            registry=registry,
        )
        self._snapshots = Counter(
            "neardup_snapshots",
            "Snapshots of shards by outcome: shipped, failed.",
            ["outcome"],
            registry=registry,
        )
        for outcome in ("shipped", "failed"):
            self._snapshots.labels(outcome)
        self._snapshot_taken = Gauge(
            "neardup_snapshot_timestamp_seconds",
            "When the newest snapshot that this worker shipped of a shard was taken.",
            ["shard"],
            registry=registry,
        )
        self._snapshot_offset = Gauge(
            "neardup_snapshot_offset",
            "The offset in fingerprints of that snapshot.",
            ["shard"],
            registry=registry,
        )
        self._snapshot_bytes = Gauge(
            "neardup_snapshot_bytes",
            "Size of that snapshot, with the files it shares with earlier ones.",
            ["shard"],
            registry=registry,
        )
        self._snapshot_damaged = Counter(
            "neardup_snapshot_damaged_files",
            "Files of snapshots that were damaged or gone when they were read back, by whether the"
            " store still has them: yes (they are shipped again), no (snapshots are lost).",
            ["in_store"],
            registry=registry,
        )
        for in_store in ("yes", "no"):
            self._snapshot_damaged.labels(in_store)
        self._restore_bytes = Gauge(
            "neardup_restore_bytes",
            "Of a snapshot that is being fetched: done, total.",
            ["shard", "part"],
            registry=registry,
        )
        self._restore_remaining = Gauge(
            "neardup_restore_remaining_records",
            "Frames that a shard has to read before it answers.",
            ["shard"],
            registry=registry,
        )
        self.watchdog = Gauge(
            "neardup_watchdog_seconds",
            "For how long a watch has seen nothing good of a stage: poll, transaction, progress,"
            " restore. At the limit the worker ends itself.",
            ["stage", "watch"],
            registry=registry,
        )
        self.watchdog_limit = Gauge(
            "neardup_watchdog_limit_seconds",
            "The limit of each watch.",
            ["watch"],
            registry=registry,
        )
        self._standby_lag = Gauge(
            "neardup_standby_lag_records",
            "Frames that a shard kept warm is behind the worker that owns it.",
            ["shard"],
            registry=registry,
        )
        self._lagging: dict[str, set[tuple[str, str, str]]] = {}
        info = Gauge("neardup_build_info", "1, with the version.", ["version"], registry=registry)
        info.labels(__version__).set(1)

    def rejected(self, code: str, count: int) -> None:
        """Count documents that *fingerprint* rejected."""
        self._documents.labels("rejected").inc(count)
        self._rejected.labels(code).inc(count)

    def indexed(self, counts: IndexCounts) -> None:
        """Count a burst of *index*."""
        self._indexed.labels("live").inc(counts.documents)
        self._indexed.labels("replayed").inc(counts.replayed)
        self._candidates.inc(counts.candidates)
        self._matches.inc(counts.matches)
        self._absorbed.inc(counts.absorbed)
        self._dropped.inc(counts.dropped)

    def lagging(self, stage: str, lags: Mapping[TopicPartition, int]) -> None:
        """Tell how far a stage is behind; what it owned before is not shown any more."""
        shown = {(stage, at.topic, str(at.partition)): lag for at, lag in lags.items()}
        for labels in self._lagging.get(stage, set()) - shown.keys():
            self._lag.remove(*labels)
        for labels, lag in shown.items():
            self._lag.labels(*labels).set(lag)
        self._lagging[stage] = set(shown)

    def holding(self, stores: Mapping[int, BandStore], cached_bytes: int) -> None:
        """Tell of the shards that this worker has open, and of no others."""
        for gauge in (self._index_bytes, self._index_keys, self._index_memory):
            gauge.clear()
        for shard, store in stores.items():
            self._index_bytes.labels(str(shard)).set(store.size_bytes())
            self._index_keys.labels(str(shard)).set(store.keys_estimate())
            self._index_memory.labels(str(shard)).set(store.memory_bytes())
        self._cache.set(cached_bytes)

    def restoring(self, states: Mapping[int, RestoreState]) -> None:
        """Tell of the shards that don't answer yet; all others do."""
        self._restore_bytes.clear()
        self._restore_remaining.clear()
        for shard, state in states.items():
            self._restore_bytes.labels(str(shard), "done").set(state.bytes_done)
            self._restore_bytes.labels(str(shard), "total").set(state.bytes_total)
            self._restore_remaining.labels(str(shard)).set(state.remaining)

    def standby(self, lag: Mapping[int, int]) -> None:
        """Tell of the shards that are kept warm."""
        self._standby_lag.clear()
        for shard, behind in lag.items():
            self._standby_lag.labels(str(shard)).set(behind)

    def snapshot_events(self) -> ShipperEvents:
        """Give what snapshots are reported to."""
        return _Snapshots(self)

    def routed(self, counts: RouteCounts) -> None:
        """Count a burst of *route*."""
        self._documents.labels("unique").inc(counts.unique)
        self._documents.labels("duplicate").inc(counts.duplicate)
        for code, count in counts.lost.items():
            self._documents.labels("rejected").inc(count)
            self._rejected.labels(code).inc(count)
        self._tombstones.inc(counts.tombstones)
        now = self._clock()
        observe = self._latency.observe
        for timestamp in counts.timestamps:
            observe(max(0.0, now - timestamp / 1000))

    def loop_events(self, stage: str) -> LoopEvents:
        """Give what a stage's loop reports to."""
        return _Events(self, stage)


class _Snapshots(ShipperEvents):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def shipped(self, manifest: Manifest, seconds: float) -> None:
        del seconds
        metrics, shard = self._metrics, str(manifest.shard)
        metrics._snapshots.labels("shipped").inc()  # noqa: SLF001 -- one concept, two classes
        metrics._snapshot_taken.labels(shard).set(manifest.created)  # noqa: SLF001
        metrics._snapshot_offset.labels(shard).set(manifest.offset)  # noqa: SLF001
        metrics._snapshot_bytes.labels(shard).set(manifest.size_bytes)  # noqa: SLF001

    def failed(self, shard: int) -> None:
        del shard
        self._metrics._snapshots.labels("failed").inc()  # noqa: SLF001

    def damaged(self, shard: int, damage: Damage) -> None:
        del shard
        counter = self._metrics._snapshot_damaged  # noqa: SLF001
        counter.labels("yes").inc(len(damage.repairable))
        counter.labels("no").inc(len(damage.lost))


class _Events(LoopEvents):
    def __init__(self, metrics: Metrics, stage: str) -> None:
        self._metrics = metrics
        self._stage = stage
        self._poll = metrics._poll.labels(stage)  # noqa: SLF001 -- one concept, two classes
        self._records = metrics._records.labels(stage)  # noqa: SLF001
        self._seconds = metrics._transaction_seconds.labels(stage)  # noqa: SLF001

    def polled(self, records: int) -> None:
        self._poll.set_to_current_time()
        self._records.inc(records)

    def transaction(self, outcome: str, seconds: float, records: int) -> None:
        del records
        self._metrics._transactions.labels(self._stage, outcome).inc()  # noqa: SLF001
        self._seconds.observe(seconds)

    def assigned(self, partitions: int) -> None:
        self._metrics._partitions.labels(self._stage).set(partitions)  # noqa: SLF001
        self._metrics._rebalances.labels(self._stage).inc()  # noqa: SLF001
