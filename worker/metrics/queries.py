"""The metrics of queries."""

from __future__ import annotations

from collections.abc import Iterable

from worker.metrics.instruments import Instruments

__all__ = ["QueryMetrics"]


class QueryMetrics:
    """Counts requests and the verdicts that they were told. Thread-safe."""

    def __init__(self, instruments: Instruments) -> None:
        """Start at zero."""
        self._requests = instruments.counter("neardup_queries_total")
        self._seconds = instruments.histogram("neardup_query_seconds")
        self._verdicts = instruments.counter("neardup_query_verdicts_total")

    def asked(self, outcome: str, seconds: float) -> None:
        """Count a request by outcome, and observe how long its answer took."""
        self._requests.labels(outcome).inc()
        self._seconds.observe(seconds)

    def told(self, verdicts: Iterable[str]) -> None:
        """Count verdicts that were told."""
        for verdict in verdicts:
            self._verdicts.labels(verdict).inc()
