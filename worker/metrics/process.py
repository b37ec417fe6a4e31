"""The metrics of a worker's process."""

from __future__ import annotations

from collections.abc import Mapping

from worker import __version__
from worker.bus import Queued
from worker.metrics.instruments import Instruments

__all__ = ["ProcessMetrics"]


class ProcessMetrics:
    """Exports the version, memory, Kafka's silence, and the watchdog's observations."""

    def __init__(self, instruments: Instruments) -> None:
        """Export the version."""
        self._watchdog = instruments.gauge("neardup_watchdog_seconds")
        self._limits = instruments.gauge("neardup_watchdog_limit_seconds")
        self._memory = instruments.gauge("neardup_memory_bytes")
        self._shares = instruments.gauge("neardup_memory_share_bytes")
        self._queued = instruments.gauge("neardup_queued_messages")
        self._silent = instruments.gauge("neardup_kafka_silent_seconds")
        self._refused = instruments.gauge("neardup_refused_settings")
        instruments.gauge("neardup_build_info").labels(__version__).set(1)

    def silent(self, seconds: float) -> None:
        """Export for how long Kafka has left requests unanswered."""
        self._silent.set(seconds)

    def refused(self, count: int) -> None:
        """Export how many settings of topics are such that no worker would start."""
        self._refused.set(count)

    def memory(self, part: str, used: int, share: int) -> None:
        """Export what a part of the worker takes of its share of memory, in bytes."""
        self._memory.labels(part).set(used)
        self.share(part, share)

    def queued(self, queues: Mapping[str, Queued], shares: Mapping[str, int]) -> None:
        """Export the queues of Kafka's clients, of each part that has a share in bytes."""
        for part in queues.keys() & shares.keys():
            self.memory(part, queues[part].size, shares[part])
            self._queued.labels(part).set(queues[part].messages)

    def share(self, part: str, share: int) -> None:
        """Export the share of a part, in bytes."""
        self._shares.labels(part).set(share)

    def limit(self, watch: str, seconds: float) -> None:
        """Export the limit of a watch."""
        self._limits.labels(watch).set(seconds)

    def watched(self, stage: str, watch: str, seconds: float) -> None:
        """Export for how long a watch has seen no progress in a stage."""
        self._watchdog.labels(stage, watch).set(seconds)
