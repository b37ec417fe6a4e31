"""Which estimated containments are enough for a match."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.containment import containment_of, error_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.rules import BucketRules

__all__ = ["sufficient"]


def sufficient(
    alike: NDArray[np.float64],
    size: int | NDArray[np.integer],
    sizes: NDArray[np.integer],
    slots: int,
    rules: BucketRules,
) -> NDArray[np.float64]:
    """Return the containments that are enough for rules that have one; 0 for all others.

    The arguments, and what is said of machines, are those of
    `lsh.containment.containment_of`.
    """
    shares = containment_of(alike, size, sizes, slots)
    errors = error_of(alike, size, sizes, slots)
    least = 1.0 if rules.containment is None else rules.containment
    enough = (shares >= least) & (errors <= rules.containment_error)
    return np.where(enough, shares, 0.0)
