"""The probability that an index publishes a pair: that it meets the pair, and estimates enough.

Let a pair have Jaccard similarity s, and its signatures k slots, of which b bands take r each.

1. A slot agrees with probability s. So j slots agree with the binomial probability
   C(k, j) s^j (1 - s)^(k - j), and every choice of j slots is as likely as any other.
2. Of these choices, the ones without a whole band are counted by the coefficient of x^j in

       ((1 + x)^r - x^r)^b (1 + x)^(k - br).

   The others share a band, and make the pair candidates.
3. In a sketch, each of the k - j slots that differ looks equal with probability 2^-8. The pair
   is published if the slots that look equal are as many as the threshold asks for.

Steps 2 and 3 depend on the same j: a pair that is estimated high has most likely shared a band.
So the probability is the sum over j of their product, and more than the product of the S-curve
and of the estimate's distribution.

Slots are taken as independent here. Those of one permutation are drawn without replacement, and
their estimates vary less (`lsh.sketch`), so pairs above the threshold are found more often than
this says, and pairs below it less often.

Sources: Li and König, "b-bit minwise hashing", WWW 2010 (step 3); Leskovec, Rajaraman, Ullman,
"Mining of Massive Datasets", 3.4.2 (the S-curve, which is step 2 summed over all j).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lsh.sketch import SKETCH_BITS, estimates

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["detection"]

_CHANCE = 2.0**-SKETCH_BITS


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
    alike = np.asarray(similarity, dtype=np.float64)
    agreeing = _binomial(slots, alike.reshape(-1, 1))
    counts = np.arange(slots + 1)
    if smooth:
        wanted = slots * (_CHANCE + (1.0 - _CHANCE) * threshold)
        enough = np.clip(counts + 1.0 - wanted, 0.0, 1.0)
    else:
        enough = (estimates(slots) >= threshold).astype(np.float64)
    published = _met(slots, bands, rows) * (_looking_equal(slots) @ enough)
    return np.asarray(np.clip(agreeing @ published, 0.0, 1.0).reshape(alike.shape))


@lru_cache(maxsize=32)
def _met(slots: int, bands: int, rows: int) -> NDArray[np.float64]:
    """Return float64[slots + 1], the chance of a shared band for each number of agreeing slots.

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


@lru_cache(maxsize=8)
def _looking_equal(slots: int) -> NDArray[np.float64]:
    """Return float64[slots + 1, slots + 1]: row j has P(i slots look equal | j agree)."""
    table = np.zeros((slots + 1, slots + 1))
    for agreeing in range(slots + 1):
        table[agreeing, agreeing:] = _binomial(slots - agreeing, np.float64(_CHANCE))
    return table


def _binomial(trials: int, chance: NDArray[np.float64] | np.float64) -> NDArray[np.float64]:
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
