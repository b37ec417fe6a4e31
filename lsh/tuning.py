"""Chooses slots, bands and rows: what must be found is a constraint, cost is minimised.

Verification on sketches removes false candidates, so bands need not be precise;
what they miss is lost for good. The usual way, minimising a weighted sum of
false positives and negatives over all similarities, leaves recall at the
threshold itself between 30 % and 60 %.

A pair exactly at the threshold is estimated below it half of the time, whatever the
parameters. So there is a constraint for the bands at the threshold, and one for what remains
after verification a little above it, which decides how many slots are needed.

`detection` is the probability that an index publishes a pair: that it meets the pair, and
estimates enough. Let a pair have Jaccard similarity s, and its sketches k slots, of which b bands
take r each.

1. A slot is equal with probability p = s + (1 - s) / 2^8: the shingles are the same, or their
   8 bits happen to be. So j slots are equal with the binomial probability
   C(k, j) p^j (1 - p)^(k - j), and every choice of j slots is as likely as any other.
2. Of these choices, the ones without a whole band are counted by the coefficient of x^j in

       ((1 + x)^r - x^r)^b (1 + x)^(k - br).

   The others share a band, and make the pair candidates.
3. Candidates are published if j is as large as the threshold asks for.

Bands and estimate see the same slots: a pair that is estimated high has most likely shared a
band. So the probability is the sum over the j that are enough, and more than the product of the
S-curve and of the estimate's distribution.

Slots are taken as independent here. Those of one permutation are drawn without replacement, and
their estimates vary less (`lsh.sketch`), so pairs above the threshold are found more often than
this says, and pairs below it less often.

Sources: Li and König, "b-bit minwise hashing", WWW 2010 (step 1); Leskovec, Rajaraman, Ullman,
"Mining of Massive Datasets", 3.4.2 (the S-curve, which is step 2 summed over all j).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.columns import is_integer, is_number
from lsh.sketch import agreement, estimates

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def detection(  # noqa: PLR0913 -- the parameters of a fingerprint
    similarity: ArrayLike,
    threshold: float,
    slots: int,
    bands: int,
    rows: int,
    *,
    smooth: bool = False,
) -> NDArray[np.float64]:
    """Return the probability that an index publishes a pair.

    similarity: true Jaccard similarities in [0, 1], of any shape; the result is float64 of that
        shape.
    threshold: least estimated similarity of published pairs.
    slots, bands, rows: of the fingerprints; sketches keep 8 bits of a slot.
    smooth: take a threshold between two counts of equal slots as partly the one and partly the
        other. This tells numbers of slots apart, not how they happen to be rounded.
    """
    equal = agreement(similarity)
    if smooth:
        wanted = slots * float(agreement(threshold))
        enough = np.clip(np.arange(slots + 1) + 1.0 - wanted, 0.0, 1.0)
    else:
        enough = (estimates(slots) >= threshold).astype(np.float64)
    published = _binomial(slots, equal.reshape(-1, 1)) @ (_met(slots, bands, rows) * enough)
    return np.asarray(np.clip(published, 0.0, 1.0).reshape(equal.shape))


@lru_cache(maxsize=32)
def _met(slots: int, bands: int, rows: int) -> NDArray[np.float64]:
    """Return float64[slots + 1], the chance of a shared band for each number of equal slots.

    The coefficients are the digits of the polynomial's value at 2^w, with w larger than the
    bits of any of them (Kronecker substitution), so they are exact.
    """
    width = slots // 8 + 1  # bytes; a coefficient is at most 2^slots
    x = 1 << 8 * width
    none = ((1 + x) ** rows - x**rows) ** bands * (1 + x) ** (slots - bands * rows)
    choices = (1 + x) ** slots
    pairs = zip(_digits(none, width, slots), _digits(choices, width, slots), strict=True)
    return np.array([(every - missed) / every for missed, every in pairs])


def _digits(number: int, width: int, most: int) -> list[int]:
    """Return the first `most` + 1 digits of a number to the base 256^width, lowest first."""
    raw = number.to_bytes(width * (most + 2), "little")
    ends = range(width, width * (most + 1) + 1, width)
    return [int.from_bytes(raw[end - width : end], "little") for end in ends]


def _binomial(trials: int, chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities of 0 to `trials` successes, for each of a column of chances.

    chance: float64[n, 1]; the result is float64[n, trials + 1].
    """
    logs = np.append(0.0, np.cumsum(np.log(np.arange(1, trials + 1, dtype=np.float64))))
    counts = np.arange(trials + 1)
    ways = logs[-1] - logs - logs[::-1]
    tiny = np.finfo(np.float64).tiny
    success = counts * np.log(np.maximum(chance, tiny))
    failure = (trials - counts) * np.log(np.maximum(1.0 - chance, tiny))
    return np.asarray(np.exp(ways + success + failure), dtype=np.float64)


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
        4096 with which, by the model in `lsh.tuning`, the index publishes at least the
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
