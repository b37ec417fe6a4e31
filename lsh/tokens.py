"""Fingerprints of sets of tokens, and of tokens with counts.

A token is a str or bytes: a word, a tag, a column's value, an identifier. Sets have neither
order nor repeats. The set of the words of a text has the fingerprint that the text has with
shingles of one word, but for the last key.

Counts are whole weights. A token that occurs n times stands for the n different elements
(token, 1) to (token, n). The Jaccard similarity of the sets of these is the generalised one of
the counts, sum(min(a, b)) / sum(max(a, b)); for weights that aren't whole, see `lsh.weighted`.
Source: Haveliwala, Gionis, Indyk, "Scalable techniques for clustering the web", WebDB 2000.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lsh.arguments import shown
from lsh.bands import band_keys, text_keys
from lsh.fingerprint import Fingerprints
from lsh.mixing import finalise
from lsh.shingles import Shingler, Shingles
from lsh.sketch import compact, signatures

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.parameters import Parameters


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
