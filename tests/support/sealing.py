"""Forges values of a store: with the checksum that the core expects, whatever they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from worker.index.contents import Key
from worker.index.keyspace import grown_key
from worker.index.store import BandStore

_FACTOR: Final = 0x9FB21C651E98DF25
_STARTS: Final = (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89)
_WORDS: Final = 1 << 64


def put_bucket(store: BandStore, place: Key, documents: Sequence[int], era: int = 0) -> None:
    """Put what a bucket has grown to into a store."""
    column, key = place
    packed = b"".join(number.to_bytes(4, "little") for number in documents)
    stored = grown_key(era, bytes([column]) + key.to_bytes(8, "big"))
    store.db[stored] = sealed(stored, packed)


def sealed(key: bytes, value: bytes) -> bytes:
    """Return a value with the checksum with which the core stores it."""
    return value + _checksum(key, value).to_bytes(4, "little")


def _checksum(key: bytes, value: bytes) -> int:
    lanes = list(_STARTS)
    for part in (key, value):
        padded = part.ljust(-(-len(part) // 32) * 32, b"\0")
        for at in range(0, len(padded), 8):
            word = int.from_bytes(padded[at : at + 8], "little")
            lane = at // 8 % 4
            lanes[lane] = _rotated((lanes[lane] ^ word) * _FACTOR % _WORDS, 31)
    total = len(value) * _FACTOR % _WORDS
    for lane_value in lanes:
        total = _rotated(total ^ lane_value, 29) * _FACTOR % _WORDS
    return (total ^ total >> 32) % (1 << 32)


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 64 - bits) % _WORDS
