"""The Prometheus metrics of a worker: one table of all metrics, and one object per area."""

from __future__ import annotations

from worker.metrics.metrics import Metrics
from worker.metrics.table import TABLE, Metric

__all__ = ["TABLE", "Metric", "Metrics"]
