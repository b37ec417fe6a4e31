"""The metrics in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family

from worker.metrics.metric import Counter, Histogram
from worker.metrics.metrics import Metrics
from worker.metrics.table import TABLE

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_PROCESS: Final = ProcessCollector(registry=None)
"""What /proc says of this process, under the names that all of Prometheus's clients use."""


def exposition(metrics: Metrics) -> bytes:
    """Return all metrics, and ``process_*``. Each series has the application as label ``app``."""
    return generate_latest(_Collected(metrics))


class _Collected:
    """What prometheus-client writes: a family of series for each metric."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Family]:
        app = self._metrics.app
        for metric in TABLE:
            names = ("app", *metric.labels)
            if isinstance(metric, Histogram):
                yield self._histogram(metric, names)
                continue
            kind = CounterMetricFamily if isinstance(metric, Counter) else GaugeMetricFamily
            family = kind(metric.name, metric.meaning, labels=names)
            for labels, value in self._metrics.numbers(metric).items():
                family.add_metric((app, *labels), value)
            yield family
        for own in _PROCESS.collect():
            own.samples = [one._replace(labels={"app": app, **one.labels}) for one in own.samples]
            yield own

    def _histogram(self, metric: Histogram, names: tuple[str, ...]) -> Family:
        family = HistogramMetricFamily(metric.name, metric.meaning, labels=names)
        bounds = [*(str(float(bound)) for bound in metric.buckets), "+Inf"]
        for labels, (counts, total) in self._metrics.observations(metric).items():
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            family.add_metric((self._metrics.app, *labels), buckets, total)
        return family
