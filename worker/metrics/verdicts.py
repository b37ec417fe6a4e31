"""The metrics of documents and their verdicts."""

from __future__ import annotations

from collections.abc import Callable

from worker.metrics.instruments import Instruments
from worker.stages import FingerprintEvents, RouteCounts, RouteEvents

__all__ = ["VerdictMetrics"]


class VerdictMetrics(FingerprintEvents, RouteEvents):
    """Counts documents after the transaction that publishes them has been committed.

    *fingerprint* and *route* feed it, each from its own thread. Both reject documents.
    """

    def __init__(self, instruments: Instruments, clock: Callable[[], float]) -> None:
        """Start at zero; ``clock`` returns seconds since the epoch."""
        self._clock = clock
        documents = instruments.counter("neardup_documents_total")
        self._unique = documents.labels("unique")
        self._duplicate = documents.labels("duplicate")
        self._rejected = documents.labels("rejected")
        self._reasons = instruments.counter("neardup_rejected_total")
        self._tombstones = instruments.counter("neardup_tombstones_total")
        self._unusable = instruments.counter("neardup_tombstones_unusable_total")
        self._waiting = instruments.gauge("neardup_memory_bytes").labels("lanes")
        self._latency = instruments.histogram("neardup_latency_seconds")

    def rejected(self, code: str, count: int) -> None:
        """Count rejected documents, by the reason's code."""
        self._rejected.inc(count)
        self._reasons.labels(code).inc(count)

    def unusable(self, count: int) -> None:
        """Count tombstones that forget no document."""
        self._unusable.inc(count)

    def waiting(self, size: int) -> None:
        """Export the memory of what waits in *route*."""
        self._waiting.set(size)

    def routed(self, counts: RouteCounts) -> None:
        """Add the counts of a burst, and observe the latencies of its documents."""
        self._unique.inc(counts.unique)
        self._duplicate.inc(counts.duplicate)
        for code, count in counts.lost.items():
            self.rejected(code, count)
        self._tombstones.inc(counts.tombstones)
        now = self._clock()
        observe = self._latency.observe
        for timestamp in counts.timestamps:
            observe(max(0.0, now - timestamp / 1000))
