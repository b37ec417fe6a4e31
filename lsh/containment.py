"""The share of one set that is in another, estimated from two sketches and the sizes of the sets.

Let A have a elements, B have b, and q = b / a. The containment of A in B is C = |A & B| / a. With
the Jaccard similarity J = |A & B| / (a + b - |A & B|),

    C = (1 + q) J / (1 + J)    and    J = C / (1 + q - C).

Sketches estimate J with variance v, at most J (1 - J) / slots for full slots. C is a function of
J, so by the delta method

    standard error of C = (1 + q) / (1 + J)^2 sqrt(v),    bias of C = -(1 + q) / (1 + J)^3 v.

The bias is taken off. The error grows with q: a sketch says little about a small set in a large
one. With 128 slots and C = 0.9, it is 0.02 for equal sizes, 0.10 for q = 3, and 0.24 for q = 10.

Sources: Broder, "On the resemblance and containment of documents", SEQUENCES 1997; Zhu, Nargesian,
Pu, Miller, "LSH Ensemble: Internet-scale domain search", VLDB 2016 (the two conversions); Casella
and Berger, "Statistical Inference", 5.5.4 (the delta method, of first and second order).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.sketch import SKETCH_BITS, similarity
from lsh.tuning import standard_error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


MOST_ERROR = 0.1
"""The largest standard error of an estimate by which the filter judges."""


def containment(
    sketch: NDArray[np.uint8], size: int, others: NDArray[np.uint8], sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the estimated containment of one set in each of m others.

    sketch: uint8[slots], of a set with `size` elements, at least 1.
    others: uint8[m, slots], of sets with `sizes` elements, int64[m]. Elements are counted once:
        `shingle_counts` of texts count repeats; see `lsh.fingerprint.sized`.

    Returns float64[m] in [0, min(1, sizes / size)]; exactly 1.0 for equal sketches of equal
    sizes. The limits of that range draw estimates near them inwards.
    """
    return containment_of(similarity(sketch, others), size, sizes, len(sketch))


def containment_of(
    alike: NDArray[np.float64],
    size: int | NDArray[np.integer],
    sizes: NDArray[np.integer],
    slots: int,
) -> NDArray[np.float64]:
    """Return the estimated containment of sets in others, pair by pair, from their similarity.

    alike: float64[m], the similarity of each pair, estimated from ``slots`` slots.
    size: of the set that is looked for, or int[m], of that of each pair. sizes: int[m], of the
        others. Sizes below 1 count as 1.

    Returns float64[m], like `containment`. It takes only operations that IEEE 754 rounds in one
    way, so all machines find the same.
    """
    ratio = np.maximum(sizes, 1) / np.maximum(size, 1)
    more = 1.0 + alike
    variance = alike * (1.0 - alike) / slots
    found = (1.0 + ratio) * (alike / more + variance / (more * more * more))
    return np.asarray(np.clip(found, 0.0, np.minimum(ratio, 1.0)), dtype=np.float64)


def error_of(
    alike: NDArray[np.float64],
    size: int | NDArray[np.integer],
    sizes: NDArray[np.integer],
    slots: int,
) -> NDArray[np.float64]:
    """Return the standard error of what `containment_of` returns, as far as estimates tell it.

    The arguments, and what is said of machines, are those of `containment_of`.
    """
    more = 1.0 + alike
    variance = alike * (1.0 - alike) / slots
    slope = (1.0 + np.maximum(sizes, 1) / np.maximum(size, 1)) / (more * more)
    return np.asarray(slope * np.sqrt(variance), dtype=np.float64)


def containment_error(containment: ArrayLike, ratio: ArrayLike, slots: int) -> NDArray[np.float64]:
    """Return the standard error of an estimated containment.

    containment: true containments of A in B, of any shape; the result is float64 of that shape.
    ratio: the size of B by that of A.

    It is computed for independent slots of 8 bits. One-permutation slots have a smaller error.
    """
    ratio = np.asarray(ratio, dtype=np.float64)
    alike = jaccard_of_containment(containment, ratio)
    slope = (1.0 + ratio) / (1.0 + alike) ** 2
    return np.asarray(slope * standard_error(alike, slots, SKETCH_BITS))


def jaccard_of_containment(containment: ArrayLike, ratio: ArrayLike) -> NDArray[np.float64]:
    """Return the Jaccard similarity of A and B, float64, at most 1.

    containment: of A in B, in [0, 1]. ratio: the size of B by that of A, above 0.
    """
    within = np.asarray(containment, dtype=np.float64)
    ratio = np.asarray(ratio, dtype=np.float64)
    return np.asarray(np.minimum(within / (1.0 + ratio - within), 1.0))
