"""Integer mixing: where every constant of the scheme comes from.

Constants are the output of SplitMix64 (Steele, Lea, Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014), computed with Python integers.
No library's random generator takes part, so no upgrade can move them.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MASK = (1 << 64) - 1
_HALF = np.uint64(32)
_FMIX_1 = np.uint64(0xFF51AFD7ED558CCD)
_FMIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
_FMIX_SHIFT = np.uint64(33)


@lru_cache(maxsize=64)
def constants(state: int, count: int) -> NDArray[np.uint64]:
    """Return the first `count` integers of SplitMix64 from `state`: uint64[count], read-only.

    Remembered, since every batch asks for the same few.
    """
    drawn = np.empty(count, dtype=np.uint64)
    for position in range(count):
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        word = state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
        drawn[position] = word ^ (word >> 31)
    drawn.flags.writeable = False
    return drawn


def secret(seed: bytes, purpose: bytes) -> int:
    """Return 64 bits of BLAKE2b of `seed`, independent for each `purpose`.

    `purpose` is at most 16 bytes, BLAKE2's own limit.
    """
    digest = blake2b(seed, digest_size=8, person=purpose).digest()
    return int.from_bytes(digest, "little")


def odd(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return `numbers` made odd: factors by which multiplying mod 2^64 is a bijection."""
    return numbers | np.uint64(1)


def finalise(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix each 64-bit word in place, so that every output bit hangs on every input bit.

    This is MurmurHash3's fmix64, a bijection. Returns `words`.
    """
    words ^= words >> _FMIX_SHIFT
    words *= _FMIX_1
    words ^= words >> _FMIX_SHIFT
    words *= _FMIX_2
    words ^= words >> _FMIX_SHIFT
    return words


def finalise_product(
    words: NDArray[np.uint64], factor: np.uint64, scratch: NDArray[np.uint64]
) -> None:
    """Mix in place words that are products with an odd 64-bit factor already.

    The last two thirds of fmix64; the caller's factor stands for the first
    multiplication. `scratch` has the shape of `words` and is overwritten.
    """
    np.right_shift(words, _HALF, out=scratch)
    np.bitwise_xor(words, scratch, out=words)
    np.multiply(words, factor, out=words)
    np.right_shift(words, _HALF, out=scratch)
    np.bitwise_xor(words, scratch, out=words)
