"""Numbers in order: where they change, and which are different.

numpy has these as `numpy.diff`, which takes three to four times as long with a number before, and
`numpy.unique`, which does so with many numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["first_of_each", "without_repeats"]

IntegerT = TypeVar("IntegerT", bound=np.integer)


def first_of_each(numbers: NDArray[IntegerT]) -> NDArray[np.bool_]:
    """Return which of n numbers differ from the one before: bool[n]. The first one does."""
    first = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=first[1:])
    return first


def without_repeats(numbers: NDArray[IntegerT]) -> NDArray[IntegerT]:
    """Return the different ones of n integers, ascending."""
    ordered = np.sort(numbers)
    different: NDArray[IntegerT] = ordered[first_of_each(ordered)]
    return different
