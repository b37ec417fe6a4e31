"""Equality of what holds arrays, of which `==` would compare element by element."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

__all__ = ["same_arrays"]


def same_arrays(ours: Iterable[object], theirs: Iterable[object]) -> bool:
    """Return whether arrays are equal in number, shape, type and values."""
    pairs = zip(map(np.asarray, ours), map(np.asarray, theirs), strict=True)
    return all(one.dtype == other.dtype and np.array_equal(one, other) for one, other in pairs)
