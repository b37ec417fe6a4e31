"""The metrics of a worker's shards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from worker.bus import TopicPartition
from worker.loop.options import LoopEvents
from worker.metrics.instruments import Instruments
from worker.metrics.series import Series
from worker.stages import (
    IndexCounts,
    IndexEvents,
    LeftOut,
    RefingerprintCounts,
    RefingerprintEvents,
    Status,
    StoreParts,
    StoreReach,
    StoreSize,
)

__all__ = ["BuildingMetrics", "IndexMetrics", "RewritingMetrics"]


class IndexMetrics(IndexEvents):
    """Counts what *index* judges, and exports the shards that it owns, restores or keeps warm."""

    def __init__(self, instruments: Instruments) -> None:
        """Start at zero, with no shards."""
        documents = instruments.counter("neardup_index_documents_total")
        self._live = documents.labels("live")
        self._replayed = documents.labels("replayed")
        self._candidates = instruments.counter("neardup_index_candidates_total")
        self._matches = instruments.counter("neardup_index_matches_total")
        self._absorbed = instruments.counter("neardup_index_absorbed_total")
        self._covered = instruments.counter("neardup_index_covered_total")
        self._divided = instruments.counter("neardup_index_divided_total")
        self._dropped = instruments.counter("neardup_index_dropped_total")
        self._older = instruments.counter("neardup_index_older_total")
        self._repeated = instruments.counter("neardup_index_repeated_total")
        self._expired = instruments.counter("neardup_index_expired_eras_total")
        self._eras: dict[int, int] = {}
        self._bytes = Series(instruments.gauge("neardup_index_bytes"))
        self._keys = Series(instruments.gauge("neardup_index_keys"))
        self._memory = Series(instruments.gauge("neardup_index_memory_bytes"))
        self._documents = Series(instruments.gauge("neardup_index_kept_documents"))
        self._kept_eras = Series(instruments.gauge("neardup_index_eras"))
        self._runs = Series(instruments.gauge("neardup_index_runs"))
        self._cells = Series(instruments.gauge("neardup_index_cells"))
        self._oldest = Series(instruments.gauge("neardup_index_oldest_seconds"))
        self._generation = instruments.gauge("neardup_index_generation")
        self._restored = Series(instruments.gauge("neardup_restore_bytes"))
        self._remaining = Series(instruments.gauge("neardup_restore_remaining_records"))
        self._standby = Series(instruments.gauge("neardup_standby_lag_records"))

    def indexed(self, counts: IndexCounts) -> None:
        """Add the counts of a burst."""
        self._live.inc(counts.documents)
        self._replayed.inc(counts.replayed)
        self._candidates.inc(counts.candidates)
        self._matches.inc(counts.matches)
        self._absorbed.inc(counts.absorbed)
        self._covered.inc(counts.covered)
        self._divided.inc(counts.divided)
        self._dropped.inc(counts.dropped)
        self._older.inc(counts.older)
        self._repeated.inc(counts.repeated)

    def status(self, status: Status) -> None:
        """Export exactly the shards that don't answer yet and those that are kept warm."""
        restored: dict[tuple[str, ...], float] = {}
        remaining: dict[tuple[str, ...], float] = {}
        for shard, state in status.restoring.items():
            label = str(shard)
            restored[label, "done"] = state.bytes_done
            restored[label, "total"] = state.bytes_total
            remaining[label,] = state.remaining
        self._restored.show(restored)
        self._remaining.show(remaining)
        self._standby.show({(str(shard),): lag for shard, lag in status.standby_lag.items()})

    def holding(self, stores: Mapping[int, StoreSize]) -> None:
        """Export exactly these open stores, by shard: sizes, parts, and how far back they reach."""
        sizes = {(str(shard),): store for shard, store in stores.items()}
        self._bytes.show({shard: store.size_bytes() for shard, store in sizes.items()})
        self._keys.show({shard: store.keys_estimate() for shard, store in sizes.items()})
        self._memory.show({shard: store.memory_bytes() for shard, store in sizes.items()})
        self._consisting({shard: s for shard, s in stores.items() if isinstance(s, StoreParts)})
        self._aging({shard: s for shard, s in stores.items() if isinstance(s, StoreReach)})

    def _consisting(self, stores: Mapping[int, StoreParts]) -> None:
        parts = {str(shard): store.parts() for shard, store in stores.items()}
        self._documents.show({(shard,): found.documents for shard, found in parts.items()})
        self._kept_eras.show({(shard,): found.eras for shard, found in parts.items()})
        for series, counts in (
            (self._runs, {shard: found.runs for shard, found in parts.items()}),
            (self._cells, {shard: found.cells for shard, found in parts.items()}),
        ):
            series.show(
                {(shard, tier): n for shard, of in counts.items() for tier, n in of.items()}
            )

    def _aging(self, stores: Mapping[int, StoreReach]) -> None:
        ages = {(str(shard),): store.oldest_seconds() for shard, store in stores.items()}
        self._oldest.show({shard: age for shard, age in ages.items() if age is not None})
        before, self._eras = self._eras, {s: store.expired_eras() for s, store in stores.items()}
        for shard, count in self._eras.items():
            # A store that was rebuilt, or came from a snapshot, has given back fewer.
            self._expired.inc(max(0, count - before.get(shard, count)))

    def using(self, generation: int) -> None:
        """Export the generation that is in use."""
        self._generation.set(generation)


class BuildingMetrics(LoopEvents):
    """Exports how far the shards of the next generation are."""

    def __init__(self, instruments: Instruments) -> None:
        """Start without shards."""
        self._remaining = Series(instruments.gauge("neardup_building_remaining_records"))

    def lagging(self, lags: Mapping[TopicPartition, int]) -> None:
        """Export exactly the shards that are being built."""
        self._remaining.show({(str(seat.partition),): lag for seat, lag in lags.items()})


class RewritingMetrics(LoopEvents, RefingerprintEvents):
    """Counts the documents that have new fingerprints, and exports how much of the log has none.

    The loop of *refingerprint* and the stage itself feed it, in one thread.
    """

    def __init__(self, instruments: Instruments) -> None:
        """Start at zero, with nothing to do."""
        self._remaining = instruments.gauge("neardup_rewriting_remaining_records")
        documents = instruments.counter("neardup_rewriting_documents_total")
        self._signed = documents.labels("signed")
        self._left_out = {why: documents.labels(why) for why in get_args(LeftOut)}

    def assigned(self, partitions: int) -> None:
        """Note that another worker makes them, or none."""
        if not partitions:
            self._remaining.set(0)

    def lagging(self, lags: Mapping[TopicPartition, int]) -> None:
        """Export what is left of the log."""
        self._remaining.set(sum(lags.values()))

    def refingerprinted(self, counts: RefingerprintCounts) -> None:
        """Add the counts of a burst."""
        self._signed.inc(counts.documents)
        for why, count in counts.left_out.items():
            self._left_out[why].inc(count)
