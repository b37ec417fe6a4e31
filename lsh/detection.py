"""The probability that an index publishes a pair: that it meets the pair, and estimates enough.

Let a pair have Jaccard similarity s, and its sketches k slots, of which b bands take r each.

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
from typing import TYPE_CHECKING

import numpy as np

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
