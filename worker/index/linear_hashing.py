"""Tables that grow and shrink by a part at a time, which is all that moves (Litwin, 1980).

A hash belongs to the place of its lowest bits, or, where there aren't so many places yet, of one
bit less. So a new place gets some of what one other place has, the last one's goes back there, and
all others stay.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["half_of", "places_of"]


def half_of(count: int) -> int:
    """Return how far behind the place that it takes over from is the last of ``count`` places.

    That is the greatest power of two below ``count``; 0 for a single place.
    """
    return (1 << (count - 1).bit_length()) // 2


def places_of(hashes: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return the places of hashes among ``count``: int64[n]."""
    half = half_of(count)
    places: npt.NDArray[np.int64] = hashes & max(0, 2 * half - 1)
    return np.where(places < count, places, places - half)
