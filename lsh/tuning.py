"""Chooses slots, bands and rows: what must be found is a constraint, cost is minimised.

Verification on sketches removes false candidates, so bands need not be precise;
what they miss is lost for good. The usual way, minimising a weighted sum of
false positives and negatives over all similarities, leaves recall at the
threshold itself between 30 % and 60 %.

A pair exactly at the threshold is estimated below it half of the time, whatever the
parameters. So there is a constraint for the bands at the threshold, and one for what remains
after verification a little above it, which decides how many slots are needed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.arguments import is_integer, is_number
from lsh.detection import detection
from lsh.sketch import agreement

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

FOUND = 0.945
"""The least share of candidates at `threshold` + 0.05 that must be published."""
WRONG = 0.01
"""The largest share of pairs at `threshold` - 0.1 that may be published."""
CONTAINMENT_RATIO = 1.5
"""How many times as long as an excerpt a text may be for the two to be sought, by default."""

_ABOVE, _BELOW = 0.05, 0.1
_SLOTS = (128, 256, 512, 1024, 2048, 4096)  # Powers of 2 are fastest.
_INTEGRATION_STEPS = 1000


class Choice(NamedTuple):
    """The length of a signature, and how it is divided."""

    slots: int
    bands: int
    rows: int


def s_curve(similarity: ArrayLike, bands: int, rows: int) -> NDArray[np.float64]:
    """Return the probability that two signatures share a band: 1 - (1 - s^rows)^bands.

    similarity: Jaccard similarities in [0, 1], of any shape; the result is
        float64 of that shape.

    The bands of an index are those of sketches; see `candidate_chance`.

    Source: Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", 3.4.2.
    """
    _require_shape(bands, rows)
    agree = np.asarray(similarity, dtype=np.float64) ** rows
    return np.asarray(1.0 - (1.0 - agree) ** bands, dtype=np.float64)


def candidate_chance(similarity: ArrayLike, bands: int, rows: int) -> NDArray[np.float64]:
    """Return the probability that two texts become candidates: their sketches share a band.

    similarity: Jaccard similarities in [0, 1], of any shape; the result is
        float64 of that shape.

    That is the S-curve at `lsh.sketch.agreement`, because slots of 8 bits may be equal by chance.
    It counts where bands have few rows: two texts without a common shingle share one of 64 bands
    of 4 rows with a probability of 1.5e-8, and one of 128 bands of 2 with 0.002.
    """
    return s_curve(agreement(similarity), bands, rows)


def candidate_load(threshold: float, bands: int, rows: int) -> float:
    """Return the expected share of texts below `threshold` that become candidates.

    It assumes similarities that are uniform on [0, threshold): use it to compare
    choices, not as a forecast.
    """
    middles = (np.arange(_INTEGRATION_STEPS) + 0.5) * (threshold / _INTEGRATION_STEPS)
    return float(candidate_chance(middles, bands, rows).mean())


def steepest(bands: int, rows: int) -> float:
    """Return the similarity at which the S-curve is steepest: ((1 - 1/r) / (b - 1/r))^(1/r).

    There, x = s^r makes the second derivative 0: (r - 1) (1 - x) = (b - 1) r x. With one row or
    one band, this is the end of the curve where it is steepest, 0 or 1; with one of each, the
    curve is straight, and the result 0.
    """
    _require_shape(bands, rows)
    if rows == 1:
        return 0.0
    return float(((1 - 1 / rows) / (bands - 1 / rows)) ** (1 / rows))


def steepest_approximately(bands: int, rows: int) -> float:
    """Return (1/b)^(1/r), the usual approximation of the similarity where the curve is steepest.

    A pair with this similarity shares a band with probability 1 - (1 - 1/b)^b, which is 0.63 and a
    little more. So it is no threshold to choose bands and rows by: more than a third of the pairs
    there would be lost.

    Source: Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", 3.4.2.
    """
    _require_shape(bands, rows)
    return float((1 / bands) ** (1 / rows))


def _require_shape(bands: int, rows: int) -> None:
    """Raise ValueError if there isn't at least one band of one row."""
    for name, value in (("bands", bands), ("rows", rows)):
        if not is_integer(value) or value < 1:
            raise ValueError(f"{name}: got {value!r}, takes an integer of at least 1")


@lru_cache(maxsize=64)
def choose(  # noqa: PLR0913 -- what is given, and what limits the choice
    threshold: float,
    slots: int | None = None,
    recall: float = 0.98,
    most_bands: int | None = None,
    *,
    bands: int | None = None,
    rows: int | None = None,
) -> Choice:
    """Return slots, bands and rows for a similarity threshold.

    slots: the length of a signature. None means the shortest of 128, 256, 512 and so on up to
        4096 with which, by the model in `lsh.detection`, the index publishes at least the
        share `FOUND` of candidates at `threshold` + 0.05, and at most the share `WRONG` of
        all pairs at `threshold` - 0.1.
    recall: least share of pairs exactly at the threshold that must become candidates.
    most_bands: the largest number of bands; None means no limit.
    bands, rows: one of the two, if it is fixed; the other one is chosen.

    For each number of rows, it takes as many bands as the slots and `most_bands`
    allow: the slots are computed anyway, and an additional band can only find
    more. Among the choices that find a pair exactly at the threshold with
    probability `recall` or more, the one with the fewest expected candidates
    wins, then the one with the fewest bands.

    Raises ValueError if a number is out of range, or no choice meets the constraints.
    """
    for name, value in (("threshold", threshold), ("recall", recall)):
        if not is_number(value) or not 0 < value <= 1:
            message = f"{name}: got {value!r}, takes a number above 0 and at most 1"
            raise ValueError(message)
    if slots is not None:
        if not is_integer(slots) or slots < 1:
            message = f"slots: got {slots!r}, takes an integer of at least 1"
            raise ValueError(message)
        return _divided(threshold, slots, recall, most_bands, bands, rows)
    for enough in _SLOTS[:-1]:
        try:
            choice = _divided(threshold, enough, recall, most_bands, bands, rows)
        except ValueError:
            continue
        if _sharp(threshold, choice):
            return choice
    return _divided(threshold, _SLOTS[-1], recall, most_bands, bands, rows)


def sought(threshold: float, containment: float | None, ratio: float = CONTAINMENT_RATIO) -> float:
    """Return the least Jaccard similarity of the pairs that bands have to find.

    That is the threshold, or, if it is lower, the similarity of a text and one `ratio` times as
    long that has the share `containment` of it; see `lsh.containment`. None: the threshold.

    Raises ValueError for a ratio below 1.
    """
    if ratio < 1:
        raise ValueError(f"containment_ratio: got {ratio!r}, takes a number of at least 1")
    if containment is None:
        return threshold
    return min(threshold, containment / (1.0 + ratio - containment))


def sufficient_slots(threshold: float) -> int:
    """Return the slots that `choose` would take if every pair became a candidate.

    This is for bands and rows that somebody else has chosen.
    """
    enough = (slots for slots in _SLOTS if _sharp(threshold, Choice(slots, slots, 1)))
    return next(enough, _SLOTS[-1])


def enough_slots(wanted: int) -> int:
    """Return the least length of a signature that `choose` would take and that has these slots."""
    return next((slots for slots in _SLOTS if slots >= wanted), _SLOTS[-1])


def _divided(  # noqa: PLR0913, PLR0917 -- what is given, and what limits the choice
    threshold: float,
    slots: int,
    recall: float,
    most_bands: int | None,
    bands: int | None,
    rows: int | None,
) -> Choice:
    """Return the bands and rows for a number of slots."""
    most = slots if most_bands is None else min(slots, most_bands)
    lengths = range(1, slots // (bands or 1) + 1) if rows is None else range(rows, rows + 1)
    choices = [(min(slots // r, most) if bands is None else bands, r) for r in lengths]
    chances = [float(candidate_chance(threshold, b, r)) for b, r in choices]
    good = [choice for choice, chance in zip(choices, chances, strict=True) if chance >= recall]
    if not good:
        message = (
            f"recall: got {recall!r}, takes at most {max(chances, default=0.0):.4f} "
            f"at threshold {threshold!r} with {slots} slots; use more slots"
        )
        raise ValueError(message)
    return Choice(
        slots, *min(good, key=lambda choice: (candidate_load(threshold, *choice), choice[0]))
    )


def _sharp(threshold: float, choice: Choice) -> bool:
    """Return whether estimates tell what is above a threshold from what is below it."""
    pairs = min(threshold + _ABOVE, 1.0), max(threshold - _BELOW, 0.0)
    found, wrong = detection(pairs, threshold, *choice, smooth=True).tolist()
    met = float(candidate_chance(pairs[0], choice.bands, choice.rows))
    return bool(found >= FOUND * met and wrong <= WRONG)


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
    if not is_integer(slots) or slots < 1:
        raise ValueError(f"slots: got {slots!r}, takes an integer of at least 1")
    chance = 0.0 if sketch_bits is None else 2.0**-sketch_bits
    agree = chance + (1.0 - chance) * np.asarray(similarity, dtype=np.float64)
    return np.asarray(np.sqrt(agree * (1.0 - agree) / slots) / (1.0 - chance), dtype=np.float64)
