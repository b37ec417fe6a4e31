"""The metrics of a worker's process."""

from __future__ import annotations

from worker import __version__
from worker.metrics.instruments import Instruments

__all__ = ["ProcessMetrics"]


class ProcessMetrics:
    """Exports the version, Kafka's silence, and the watchdog's observations."""

    def __init__(self, instruments: Instruments) -> None:
        """Export the version."""
        self._watchdog = instruments.gauge("neardup_watchdog_seconds")
        self._limits = instruments.gauge("neardup_watchdog_limit_seconds")
        self._silent = instruments.gauge("neardup_kafka_silent_seconds")
        instruments.gauge("neardup_build_info").labels(__version__).set(1)

    def silent(self, seconds: float) -> None:
        """Export for how long Kafka has left requests unanswered."""
        self._silent.set(seconds)

    def limit(self, watch: str, seconds: float) -> None:
        """Export the limit of a watch."""
        self._limits.labels(watch).set(seconds)

    def watched(self, stage: str, watch: str, seconds: float) -> None:
        """Export for how long a watch has seen no progress in a stage."""
        self._watchdog.labels(stage, watch).set(seconds)
