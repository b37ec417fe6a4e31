"""What defines a metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Area = Literal["verdicts", "stages", "index", "queries", "snapshots", "process"]


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """A metric as operators see it. Labels never contain document ids.

    Attributes:
        area: the part of the worker that it is about.
        name: the name in queries; the name of a counter ends in ``_total``.
        meaning: the help text: the quantity, its unit, and the values of its labels.
        remedy: what to look at or do, in Markdown; links are relative to ``docs/``.
        labels: the labels, each with the values that are exported from the start, as 0.
    """

    area: Area
    name: str
    meaning: str
    remedy: str
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict, kw_only=True)


class Counter(Metric):
    """A number that only grows, from 0 at the start of the process."""

    __slots__ = ()


class Gauge(Metric):
    """A number that goes up and down."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Histogram(Metric):
    """How many values were at most so large; ``buckets`` are their upper bounds, ascending."""

    buckets: tuple[float, ...] = field(kw_only=True)
