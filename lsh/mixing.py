"""Integer mixing, and the source of every constant of the scheme.

Constants are the output of SplitMix64 (Steele, Lea, Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014), computed with Python integers.
They use no library's random generator, so no upgrade can change them.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b, scrypt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEFAULT_SEED = b"neardup"
"""Public, for reproducible results."""

_MASK = (1 << 64) - 1
_FMIX_1 = np.uint64(0xFF51AFD7ED558CCD)
_FMIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
_FMIX_SHIFT = np.uint64(33)


@lru_cache(maxsize=64)
def constants(state: int, count: int) -> NDArray[np.uint64]:
    """Return the first `count` integers of SplitMix64 from `state`: uint64[count], read-only.

    Cached, because every batch uses the same few.
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


def derived(seed: bytes, purpose: bytes, size: int) -> bytes:
    """Return `size` bytes, at most 64, derived from `seed`, independent for each `purpose`.

    `purpose` is at most 16 bytes, BLAKE2's own limit.
    """
    # The public seed has nothing to protect, and nobody has to wait for it.
    origin = seed if seed == DEFAULT_SEED else _stretched(seed)
    return blake2b(origin, digest_size=size, person=purpose).digest()


def secret(seed: bytes, purpose: bytes) -> int:
    """Return 64 bits derived from `seed`, independent for each `purpose`."""
    return int.from_bytes(derived(seed, purpose, 8), "little")


@lru_cache(maxsize=8)
def _stretched(seed: bytes) -> bytes:
    """Return what everything secret is derived from: 32 bytes of scrypt of `seed`.

    Whoever knows a text and its fingerprint, or the digest that identifies the seed, can
    test guesses of the seed. scrypt makes each guess take 16 MB and tens of milliseconds.
    The salt is fixed, because all workers and indexes have to come to the same key, so one
    table of guesses serves against all sites. This protects a mediocre seed; a seed of 16
    random bytes needs no protection, and a seed from a dictionary has little.

    Source: RFC 7914.
    """
    return scrypt(seed, salt=b"neardup", n=1 << 14, r=8, p=1, dklen=32)


def odd(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return `numbers` made odd: multiplying by them mod 2^64 is a bijection."""
    return numbers | np.uint64(1)


def finalise(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix each 64-bit word in place, so that every output bit depends on every input bit.

    This is MurmurHash3's fmix64, a bijection. Returns `words`.
    """
    words ^= words >> _FMIX_SHIFT
    words *= _FMIX_1
    words ^= words >> _FMIX_SHIFT
    words *= _FMIX_2
    words ^= words >> _FMIX_SHIFT
    return words
