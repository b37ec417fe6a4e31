"""One worker's metrics, which all its threads count in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from operator import add
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from worker import __version__
from worker.metrics import table
from worker.metrics.metric import Counter, Gauge, Histogram, Metric

Labels = tuple[str, ...]
"""The values of a metric's labels, in the order of its definition."""
_Rest = TypeVar("_Rest", bound=Labels)


class _Observed:
    """What a histogram has of one series."""

    def __init__(self, histogram: Histogram) -> None:
        self.counts = [0] * (len(histogram.buckets) + 1)
        self.sum = 0.0


class Metrics:
    """The values of all metrics of the table.

    A metric is exported from the start if it has no labels, or labels with known values.

    Attributes:
        app: the application's name, which every exported series carries.
        clock: returns seconds since the epoch.
    """

    def __init__(
        self,
        app: str = "neardup",
        clock: Callable[[], float] = lambda: 0.0,
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        """Start at zero. Where several threads count, ``lock`` keeps them apart."""
        self.app = app
        self.clock = clock
        self._lock = lock or nullcontext()
        self._numbers: dict[Metric, dict[Labels, float]] = {}
        self._observed: dict[Histogram, dict[Labels, _Observed]] = {}
        for metric in table.TABLE:
            first = list(product(*metric.labels.values()))
            if isinstance(metric, Histogram):
                self._observed[metric] = {labels: _Observed(metric) for labels in first}
            else:
                self._numbers[metric] = dict.fromkeys(first, 0.0)
        self.set(table.BUILD_INFO, 1, __version__)

    def add(self, counter: Counter, amount: float = 1, *labels: str) -> None:
        """Add to a counter."""
        with self._lock:
            series = self._numbers[counter]
            series[labels] = series.get(labels, 0.0) + amount

    def set(self, gauge: Gauge, value: float, *labels: str) -> None:
        """Set a gauge."""
        with self._lock:
            self._numbers[gauge][labels] = value

    def show(self, gauge: Gauge, values: Mapping[_Rest, float], *first: str) -> None:
        """Have a gauge show exactly these values, by the labels that come after ``first``.

        Series whose first labels are others stay as they are.
        """
        with self._lock:
            series = self._numbers[gauge]
            shown = {at: value for at, value in series.items() if at[: len(first)] != first}
            shown |= {(*first, *labels): value for labels, value in values.items()}
            self._numbers[gauge] = shown

    def observe(
        self, histogram: Histogram, values: Sequence[float] | npt.NDArray[np.float64], *labels: str
    ) -> None:
        """Add values to a histogram."""
        buckets = histogram.buckets
        counts = np.bincount(np.searchsorted(buckets, values), minlength=len(buckets) + 1).tolist()
        with self._lock:
            series = self._observed[histogram]
            observed = series.setdefault(labels, _Observed(histogram))
            observed.counts = list(map(add, observed.counts, counts))
            observed.sum += float(np.sum(values))

    def value(self, metric: Counter | Gauge, *labels: str) -> float | None:
        """Return a counter's or a gauge's value; None if it has no such series."""
        with self._lock:
            return self._numbers[metric].get(labels)

    def numbers(self, metric: Counter | Gauge) -> dict[Labels, float]:
        """Return all series of a counter or a gauge."""
        with self._lock:
            return dict(self._numbers[metric])

    def observations(self, histogram: Histogram) -> dict[Labels, tuple[list[int], float]]:
        """Return the series of a histogram: the values in each bucket, and their sum."""
        with self._lock:
            found = self._observed[histogram].items()
            return {labels: (list(one.counts), one.sum) for labels, one in found}


class Tally:
    """What a stage counts of a transaction, until that is committed. Not thread-safe."""

    def __init__(self) -> None:
        """Start at zero."""
        self._counted: dict[tuple[Counter, Labels], float] = {}

    def add(self, counter: Counter, amount: float = 1, *labels: str) -> None:
        """Add to a counter, once the transaction is committed."""
        self._counted[counter, labels] = self._counted.get((counter, labels), 0) + amount

    def copy(self) -> Tally:
        """Return one with the same counts."""
        same = Tally()
        same._counted |= self._counted
        return same

    def clear(self) -> None:
        """Forget what was counted: the transaction was rolled back."""
        self._counted.clear()

    def commit(self, metrics: Metrics) -> None:
        """Count it all, and start at zero."""
        for (counter, labels), amount in self._counted.items():
            metrics.add(counter, amount, *labels)
        self._counted.clear()
