"""Whether a quantity creeps up: Theil and Sen's slope of its medians, and how sure it is.

Sen's interval takes its points to be independent, which samples of 10 s are not: a broker that
is away takes its threads with it for half a minute, and a heap that has grown stays so for a
while. So the line goes through the medians of two minutes each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

Z_95: Final = 1.96
WINDOW_SECONDS: Final = 120.0
LEAST_WINDOWS: Final = 3
LEAST_MINUTES: Final = 20.0
"""A limit of a tenth of a thread a minute comes to two threads by then: more than a fault moves."""


class Slope(NamedTuple):
    """Units a minute: the median over all pairs of samples, and its 95 % interval."""

    median: float
    low: float
    high: float


def slope_of(seconds: Sequence[float], values: Sequence[float]) -> Slope:
    """Fit a line that a fifth of wild samples doesn't move (Sen 1968, with his interval).

    Raises:
        ValueError: fewer than three samples.
    """
    count = len(values)
    if count < 3:
        raise ValueError(f"{count} samples have no trend")
    at, value = np.asarray(seconds, float) / 60, np.asarray(values, float)
    one, other = np.triu_indices(count, 1)
    slopes = np.sort((value[other] - value[one]) / (at[other] - at[one]))
    spread = Z_95 * sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, round((len(slopes) - spread) / 2))
    high = min(len(slopes) - 1, round((len(slopes) + spread) / 2))
    return Slope(float(np.median(slopes)), float(slopes[low]), float(slopes[high]))


@dataclass(frozen=True)
class Trend:
    """What a worker's process used, from its warm-up to its end."""

    worker: str
    what: str
    """With its unit."""
    minutes: float
    medians: tuple[float, ...]
    """Of each two minutes."""
    slope: Slope
    limit: float
    """Units a minute."""

    @property
    def tells(self) -> bool:
        """Tell whether it is long enough for its limit to be more than noise."""
        return self.minutes >= LEAST_MINUTES

    @property
    def creeps(self) -> bool:
        """Tell whether it rises faster than the limit, beyond doubt."""
        return self.tells and self.slope.low > self.limit


def trend_of(
    worker: str, what: str, limit: float, seconds: Sequence[float], values: Sequence[float]
) -> Trend | None:
    """Fit a trend to samples in the order of their times; None if they span too few windows."""
    at = np.asarray(seconds, float)
    windows = ((at - at[0]) // WINDOW_SECONDS).astype(int)
    firsts = np.flatnonzero(np.diff(windows, prepend=-1))
    if len(firsts) < LEAST_WINDOWS:
        return None
    middles = [float(np.median(part)) for part in np.split(at, firsts[1:])]
    medians = [float(np.median(part)) for part in np.split(np.asarray(values, float), firsts[1:])]
    minutes = float(at[-1] - at[0]) / 60
    return Trend(worker, what, minutes, tuple(medians), slope_of(middles, medians), limit)
