"""The integer mixing of the scheme. All numbers are unsigned, of 64 bits."""

from functools import cache
from hashlib import blake2b, scrypt

MOST = 2**64 - 1


@cache
def splitmix64(state: int, count: int) -> tuple[int, ...]:
    """Return the first numbers of SplitMix64: the source of all constants."""
    drawn = []
    for step in range(1, count + 1):
        word = (state + step * 0x9E3779B97F4A7C15) & MOST
        word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & MOST
        word = ((word ^ word >> 27) * 0x94D049BB133111EB) & MOST
        drawn.append(word ^ word >> 31)
    return tuple(drawn)


def fmix64(word: int) -> int:
    """Return the finaliser of MurmurHash3."""
    word = ((word ^ word >> 33) * 0xFF51AFD7ED558CCD) & MOST
    word = ((word ^ word >> 33) * 0xC4CEB9FE1A85EC53) & MOST
    return word ^ word >> 33


@cache
def derived(seed: bytes, purpose: bytes, size: int) -> bytes:
    """Return bytes that follow from the site's seed. The public seed isn't stretched."""
    if seed != b"neardup":
        seed = scrypt(seed, salt=b"neardup", n=2**14, r=8, p=1, dklen=32)
    return blake2b(seed, person=purpose, digest_size=size).digest()


def keyed(text: str, key: bytes) -> int:
    """Return the hash of a text or a word."""
    encoded = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(encoded, key=key, digest_size=8).digest(), "little")
