"""Chooses bands and rows: recall at the threshold is a constraint, candidates are minimised.

Verification on sketches removes false candidates, so bands need not be precise;
what they miss is lost for good. The usual way, minimising a weighted sum of
false positives and negatives over all similarities, leaves recall at the
threshold itself between 30 % and 60 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_INTEGRATION_STEPS = 1000


def s_curve(similarity: ArrayLike, bands: int, rows: int) -> NDArray[np.float64]:
    """Return the probability that two texts share a band: 1 - (1 - s^rows)^bands.

    similarity: Jaccard similarities in [0, 1], of any shape; the result is
        float64 of that shape.

    Source: Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", 3.4.2.
    """
    agree = np.asarray(similarity, dtype=np.float64) ** rows
    return np.asarray(1.0 - (1.0 - agree) ** bands, dtype=np.float64)


def candidate_load(threshold: float, bands: int, rows: int) -> float:
    """Return the expected share of texts below `threshold` that become candidates.

    It assumes similarities that are uniform on [0, threshold): use it to compare
    choices, not as a forecast.
    """
    middles = (np.arange(_INTEGRATION_STEPS) + 0.5) * (threshold / _INTEGRATION_STEPS)
    return float(s_curve(middles, bands, rows).mean())


def choose(
    threshold: float, slots: int, recall: float = 0.98, most_bands: int | None = None
) -> tuple[int, int]:
    """Return (bands, rows) for a similarity threshold.

    For each number of rows, it takes as many bands as the slots and `most_bands`
    allow: the slots are computed anyway, and an additional band can only find
    more. Among the choices that find a pair exactly at the threshold with
    probability `recall` or more, the one with the fewest expected candidates
    wins, then the one with the fewest bands.

    Raises ValueError if a number is out of range, or no choice reaches `recall`.
    """
    for name, value in (("threshold", threshold), ("recall", recall)):
        if not 0 < value <= 1:
            message = f"{name}: got {value!r}, takes a number above 0 and at most 1"
            raise ValueError(message)
    if slots < 1:
        message = f"slots: got {slots!r}, takes an integer of at least 1"
        raise ValueError(message)
    most = slots if most_bands is None else min(slots, most_bands)
    choices = [(min(slots // rows, most), rows) for rows in range(1, slots + 1)]
    good = [(b, r) for b, r in choices if s_curve(threshold, b, r) >= recall]
    if not good:
        best = float(s_curve(threshold, most, 1))
        message = (
            f"recall: got {recall!r}, takes at most {best:.4f} "
            f"at threshold {threshold!r} with {slots} slots; use more slots"
        )
        raise ValueError(message)
    return min(good, key=lambda choice: (candidate_load(threshold, *choice), choice[0]))


def standard_error(
    similarity: ArrayLike, slots: int, sketch_bits: int | None = None
) -> NDArray[np.float64]:
    """Return the standard error of a similarity estimated from `slots` slots.

    similarity: the true Jaccard similarities, of any shape; the result is
        float64 of that shape.
    sketch_bits: the width of a slot in bits; None means full slots.

    It is computed for independent slots, sqrt(P (1 - P) / slots) / (1 - 2^-b)
    with P = 2^-b + (1 - 2^-b) s. One-permutation slots have a smaller error.
    Source: Li and König, "b-bit minwise hashing", WWW 2010.
    """
    chance = 0.0 if sketch_bits is None else 2.0**-sketch_bits
    agree = chance + (1.0 - chance) * np.asarray(similarity, dtype=np.float64)
    return np.asarray(np.sqrt(agree * (1.0 - agree) / slots) / (1.0 - chance), dtype=np.float64)
