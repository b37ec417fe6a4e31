"""Fingerprints of sets of tokens, of tokens with counts, and of tokens with weights.

A token is a str or bytes: a word, a tag, a column's value, an identifier. Sets have neither
order nor repeats. The set of the words of a text has the fingerprint that the text has with
shingles of one word, but for the last key.

Counts are whole weights. A token that occurs n times stands for the n different elements
(token, 1) to (token, n). The Jaccard similarity of the sets of these is the generalised one of
the counts, sum(min(a, b)) / sum(max(a, b)); for weights that aren't whole, see below.
Source: Haveliwala, Gionis, Indyk, "Scalable techniques for clustering the web", WebDB 2000.

Real weights go by consistent weighted sampling. The similarity of two mappings a and b from tokens
to weights is the generalised Jaccard
similarity J = sum(min(a, b)) / sum(max(a, b)). Each slot draws a sample (token, t) from a
mapping, and two mappings have the same sample with probability J. For a slot and a token, let
r and c be Gamma(2, 1), and beta uniform on [0, 1), all three hashes of slot and token. With the
token's weight w,

    t = floor(ln(w) / r + beta),    ln(a) = ln(c) - r (t - beta + 1),

and the token with the least a is drawn. t quantises the weight, so nearly equal weights mostly
have equal t. Slots are independent: the variance is J (1 - J) / slots.

Source: Ioffe, "Improved consistent sampling, weighted minhash and L1 sketching", ICDM 2010.

Random numbers are hashes. Logarithms are those of the machine: two machines may differ in the
last bit of one, which changes a slot with a probability of about 1e-13.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lsh.columns import is_number, shown
from lsh.fingerprint import Fingerprints
from lsh.mixing import constants, finalise, odd, secret
from lsh.shingles import Shingler, Shingles
from lsh.sketch import band_keys, compact, signatures, text_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.fingerprint import Fingerprints
    from lsh.parameters import Parameters
    from lsh.shingles import Shingles

Token: TypeAlias = str | bytes
Counts: TypeAlias = Mapping[str, int] | Mapping[bytes, int] | Mapping[Token, int]

MOST_COUNT = 1 << 16
"""The largest count of a token: each costs as much as a token of its own."""

_SET = b"\xff"  # No text in UTF-8 begins so: a set never has the key of a text.
_REPEAT = np.uint64(0x9E3779B97F4A7C15)


def fingerprint_tokens(sets: Iterable[Iterable[Token]], parameters: Parameters) -> Fingerprints:
    """Return the fingerprints of n sets of tokens.

    parameters: of their fields, slots, bands, rows and seed count. Tokens aren't normalised.

    In the result, `shingle_counts` are the sizes of the sets, and the last key is that of the
    set. An empty set is blank. A token given as str is its UTF-8.

    Raises TypeError if a set is itself a text, or a token is neither str nor bytes.
    """
    return _fingerprints(token_hashes(sets, parameters).distinct(), parameters)


def fingerprint_counts(bags: Iterable[Counts], parameters: Parameters) -> Fingerprints:
    """Return the fingerprints of n mappings from tokens to counts.

    Their similarity is that of the counts. Where all counts are 1, the fingerprints are those
    of `fingerprint_tokens`. A token with count 0 is left out; of one given both as str and as
    its UTF-8, the larger count holds. `shingle_counts` are the sums of the counts.

    It takes time and memory by the sum of all counts.

    Raises TypeError as `fingerprint_tokens` does, and ValueError for a count that is no integer
    from 0 to `MOST_COUNT`.
    """
    known = bags_of(bags)
    counts = np.array([_count(n) for bag in known for n in bag.values()], dtype=np.int64)
    tokens = token_hashes(known, parameters)
    ends = np.append(0, np.cumsum(counts))
    ordinals = np.arange(ends[-1]) - np.repeat(ends[:-1], counts)
    elements = np.repeat(tokens.hashes, counts)
    repeats = ordinals > 0
    elements[repeats] = finalise(elements[repeats] + ordinals[repeats].astype(np.uint64) * _REPEAT)
    return _fingerprints(Shingles(elements, ends[tokens.starts]).distinct(), parameters)


def bags_of(bags: Iterable[Mapping[Any, Any]]) -> list[Mapping[Any, Any]]:
    """Return n mappings. Raises TypeError, which names the row, if one is none."""
    if isinstance(bags, Mapping) or not isinstance(bags, Iterable):
        raise TypeError(f"bags: got {shown(bags)}, takes a sequence of mappings")
    known = list(bags)
    for row, bag in enumerate(known):
        if not isinstance(bag, Mapping):
            raise TypeError(f"bags: row {row} has {shown(bag)}, takes a mapping from tokens")
    return known


def token_hashes(sets: Iterable[Iterable[Token]], parameters: Parameters) -> Shingles:
    """Return the hash of each token of n sets: as shingles of one word each."""
    return Shingler("word", 1, parameters.seed).tokens(sets)


def finished(
    signed: NDArray[np.uint64],
    sizes: NDArray[np.int64],
    contents: Iterable[bytes],
    parameters: Parameters,
) -> Fingerprints:
    """Return the fingerprints that n signatures make.

    signed: uint64[n, slots]. sizes: int64[n], 0 for a blank row.
    contents: bytes that are equal if and only if what was signed is.
    """
    sketches, blank = compact(signed), sizes == 0
    keys = np.column_stack(
        (
            band_keys(sketches, parameters.bands, parameters.rows),
            text_keys((_SET + content for content in contents), parameters.seed),
        )
    )
    keys[blank] = 0
    sketches[blank] = 0
    counts = np.minimum(sizes, np.iinfo(np.uint32).max).astype(np.uint32)
    return Fingerprints(keys, sketches, counts, blank)


def _fingerprints(sets: Shingles, parameters: Parameters) -> Fingerprints:
    little = sets.hashes.astype("<u8", copy=False)
    contents = (little[low:high].tobytes() for low, high in pairwise(sets.starts.tolist()))
    signed = signatures(sets.hashes, sets.starts, parameters.slots)
    return finished(signed, np.diff(sets.starts), contents, parameters)


def _count(count: int) -> int:
    if not isinstance(count, (int, np.integer)) or not 0 <= count <= MOST_COUNT:
        message = f"count: got {count!r}, takes an integer from 0 to {MOST_COUNT}; see weights"
        raise ValueError(message)
    return int(count)


Weights: TypeAlias = Mapping[str, float] | Mapping[bytes, float] | Mapping[Token, float]

_CHUNK = 1 << 14  # cells (tokens by slots) at a time: the arrays of a step stay in the L2 cache
_HALF = np.uint64(32)
_LOW = np.uint64((1 << 32) - 1)


def fingerprint_weights(bags: Iterable[Weights], parameters: Parameters) -> Fingerprints:
    """Return the fingerprints of n mappings from tokens to weights.

    parameters: of their fields, slots, bands, rows and seed count. Tokens aren't normalised.

    Compare them with one another only: what has the fingerprint of a text, a set or counts is
    drawn otherwise. A token with weight 0 is left out, and a mapping without any other is
    blank; of a token given both as str and as its UTF-8, the larger weight holds.
    `shingle_counts` are the numbers of tokens, and the last key is that of tokens and weights.

    Raises TypeError as `fingerprint_tokens` does, and ValueError for a weight that is negative
    or not finite.
    """
    given = bags_of(bags)
    known = [{token: weight for token, weight in bag.items() if _weight(weight)} for bag in given]
    tokens = token_hashes(known, parameters)
    weights = np.array([weight for bag in known for weight in bag.values()], dtype=np.float64)
    signed = _signatures(tokens, np.log(weights), _Draw(parameters))
    return finished(signed, np.diff(tokens.starts), _contents(tokens, weights), parameters)


def _weight(weight: float) -> float:
    if not is_number(weight) or not 0 <= weight < np.inf:
        message = f"weight: got {weight!r}, takes a finite number of at least 0"
        raise ValueError(message)
    return weight


def _contents(tokens: Shingles, weights: NDArray[np.float64]) -> Iterable[bytes]:
    """Yield what tells one mapping from others: its tokens and weights, by token."""
    for low, high in pairwise(tokens.starts.tolist()):
        order = low + np.argsort(tokens.hashes[low:high], kind="stable")
        yield tokens.hashes[order].astype("<u8").tobytes() + weights[order].astype("<f8").tobytes()


class _Draw:
    """The samples that slots draw for tokens."""

    def __init__(self, parameters: Parameters) -> None:
        drawn = constants(secret(parameters.seed, b"neardup weights"), 2 * parameters.slots + 3)
        self.slots = parameters.slots
        self._factors, self._offsets = odd(drawn[: self.slots]), drawn[self.slots : -3]
        self._second, self._third = drawn[-3:-1]
        self._step = odd(drawn[-1:])

    def samples(
        self, hashes: NDArray[np.uint64], logs: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return ln(a) and t of m tokens for each slot: two of float64[m, slots].

        hashes: uint64[m]. logs: float64[m], the logarithms of the weights.
        """
        words = finalise(hashes[:, None] * self._factors + self._offsets)
        r = -np.log(_product(words))
        log_c = np.log(-np.log(_product(finalise(words ^ self._second))))
        beta = _uniform(finalise(words ^ self._third) >> _HALF)
        t = np.floor(logs[:, None] / r + beta)
        return log_c - r * (t - beta + 1.0), t

    def words(self, hashes: NDArray[np.uint64], t: NDArray[np.float64]) -> NDArray[np.uint64]:
        """Return the samples (token, t) as words: uint64[n, slots].

        hashes: uint64[n, slots]. t: float64[n, slots].
        """
        steps = t.astype(np.int64).view(np.uint64) * self._step
        return finalise((hashes * self._factors + self._offsets) ^ finalise(steps))


def _signatures(tokens: Shingles, logs: NDArray[np.float64], draw: _Draw) -> NDArray[np.uint64]:
    """Return uint64[n, slots]; zeros for a mapping without tokens."""
    lengths = np.diff(tokens.starts)
    shape = len(lengths), draw.slots
    least, level = np.full(shape, np.inf), np.zeros(shape)
    drawn = np.zeros(shape, dtype=np.uint64)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    step = max(1, _CHUNK // draw.slots)
    for low in range(0, len(rows), step):
        hashes = tokens.hashes[low : low + step]
        values, t = draw.samples(hashes, logs[low : low + step])
        # The tokens of one mapping in this chunk lie together.
        owners, begins = np.unique(rows[low : low + step], return_index=True)
        winners = _first_least(values, begins)
        best = np.take_along_axis(values, winners, axis=0)
        better = best < least[owners]
        least[owners] = np.where(better, best, least[owners])
        level[owners] = np.where(better, np.take_along_axis(t, winners, axis=0), level[owners])
        drawn[owners] = np.where(better, hashes[winners], drawn[owners])
    signed = draw.words(drawn, level)
    signed[lengths == 0] = 0
    return signed


def _first_least(values: NDArray[np.float64], begins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[groups, slots], the row of the least value of each group of rows."""
    least = np.minimum.reduceat(values, begins, axis=0)
    lengths = np.diff(np.append(begins, len(values)))
    numbers = np.arange(len(values))[:, None]
    behind = np.where(values == np.repeat(least, lengths, axis=0), numbers, len(values))
    found: NDArray[np.int64] = np.minimum.reduceat(behind, begins, axis=0)
    return found


def _product(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return the product of two uniform numbers in (0, 1), the halves of each word."""
    product: NDArray[np.float64] = _uniform(words >> _HALF) * _uniform(words & _LOW)
    return product


def _uniform(halves: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return 32-bit numbers as numbers in (0, 1)."""
    uniform: NDArray[np.float64] = (halves.astype(np.float64) + 0.5) * 2.0**-32
    return uniform
