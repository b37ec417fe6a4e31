"""The hash by which Kafka's clients partition keyed records."""

from __future__ import annotations

from struct import unpack_from

__all__ = ["murmur2", "partition_for"]

_SEED = 0x9747B28C
_M = 0x5BD1E995
_R = 24
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the hash of Kafka's Java client: 32-bit MurmurHash2 with a fixed seed, unsigned.

    >>> murmur2(b"21") - 2**32
    -973932308
    """
    length = len(data)
    whole = length & ~3
    state = (_SEED ^ length) & _MASK
    for word in unpack_from(f"<{whole >> 2}I", data):
        mixed = (word * _M) & _MASK
        mixed = ((mixed ^ (mixed >> _R)) * _M) & _MASK
        state = ((state * _M) & _MASK) ^ mixed
    if whole < length:
        state = ((state ^ int.from_bytes(data[whole:], "little")) * _M) & _MASK
    state = ((state ^ (state >> 13)) * _M) & _MASK
    return state ^ (state >> 15)


def partition_for(key: bytes, partitions: int) -> int:
    """Return the partition (of ``partitions``) of a keyed record, as Java clients choose it."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
