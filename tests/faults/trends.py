"""Whether a quantity creeps up: Theil and Sen's slope of its samples, and how sure it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

__all__ = ["Slope", "Trend", "slope_of"]

Z_95: Final = 1.96
LEAST_MINUTES: Final = 5.0


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
    first: float
    last: float
    slope: Slope
    limit: float
    """Units a minute."""

    @property
    def tells(self) -> bool:
        """Tell whether it is long enough: a new process takes minutes to fill its caches."""
        return self.minutes >= LEAST_MINUTES

    @property
    def creeps(self) -> bool:
        """Tell whether it rises faster than the limit, beyond doubt."""
        return self.tells and self.slope.low > self.limit
