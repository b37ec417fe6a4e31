"""The Prometheus objects for the metrics in the table."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from worker.metrics.table import TABLE, Metric

__all__ = ["Instruments"]


class Instruments:
    """All metrics of the table by name, in a separate registry.

    Each is exported from the start, even if nothing in this worker feeds it.
    """

    def __init__(self, table: Iterable[Metric] = TABLE) -> None:
        """Create and register every metric of ``table``."""
        self.registry = CollectorRegistry()
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        for metric in table:
            self._make(metric)

    def _make(self, metric: Metric) -> None:
        name, meaning, labels = metric.name, metric.meaning, metric.labels
        registry = self.registry
        match metric.kind:
            case "counter":
                self._counters[name] = Counter(name, meaning, labels, registry=registry)
            case "gauge":
                self._gauges[name] = Gauge(name, meaning, labels, registry=registry)
            case "histogram":
                self._histograms[name] = Histogram(
                    name, meaning, labels, registry=registry, buckets=metric.buckets
                )

    def counter(self, name: str) -> Counter:
        """Return a counter by name.

        Raises:
            KeyError: the table has no counter of this name.
        """
        return self._counters[name]

    def gauge(self, name: str) -> Gauge:
        """Return a gauge by name.

        Raises:
            KeyError: the table has no gauge of this name.
        """
        return self._gauges[name]

    def histogram(self, name: str) -> Histogram:
        """Return a histogram by name.

        Raises:
            KeyError: the table has no histogram of this name.
        """
        return self._histograms[name]
