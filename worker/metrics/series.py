"""The series of a gauge for things that come and go, such as shards and partitions."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import Gauge

__all__ = ["Series"]


class Series:
    """The series of one gauge, by the values of its labels. Not thread-safe.

    Stale series are removed after the current ones are set, so a scrape never finds the gauge
    empty while there is something to show.
    """

    def __init__(self, gauge: Gauge) -> None:
        """Start without series."""
        self._gauge = gauge
        self._shown: set[tuple[str, ...]] = set()

    def show(self, values: Mapping[tuple[str, ...], float]) -> None:
        """Export exactly these values, in place of the previous ones."""
        for labels, value in values.items():
            self._gauge.labels(*labels).set(value)
        for labels in self._shown - values.keys():
            self._gauge.remove(*labels)
        self._shown = set(values)
