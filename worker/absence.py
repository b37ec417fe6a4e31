"""Which buckets surely don't exist, told without asking RocksDB.

On a feed of mostly new documents nearly every look-up is of a bucket that isn't there.
RocksDB has filters against that, too, but to ask it costs ten times as much as this.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["BucketFilter"]

_KEY = np.dtype([("band", "u1"), ("hash", ">u8")])
_PROBES = 3


class BucketFilter:
    """A Bloom filter of fixed size over bucket keys: a band's number, then 64 hashed bits.

    All of a key's bits are in one word, so that a look-up is one access to memory
    (Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", WEA 2007).
    At 16 bits a key, one absent bucket in a hundred is asked for in vain; a filter that
    is full lets everything pass, which costs time and nothing else.
    """

    def __init__(self, size_bytes: int) -> None:
        """Begin with no bucket; takes about ``size_bytes``, for ever."""
        self._words = np.zeros(max(1, size_bytes // 8), np.uint64)

    @property
    def size_bytes(self) -> int:
        """Give the memory that it takes."""
        return self._words.nbytes

    def add(self, keys: npt.NDArray[np.void]) -> None:
        """Note buckets, by their keys: V9[n]."""
        places, bits = self._locate(keys)
        while len(places):
            # Of keys that share a word, one gets its bits; the others have their turn after it.
            self._words[places] |= bits
            left = (self._words[places] & bits) != bits
            places, bits = places[left], bits[left]

    def may_hold(self, keys: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
        """Tell of each key, V9[n], whether its bucket may exist: bool[n]. What is False doesn't."""
        places, bits = self._locate(keys)
        found: npt.NDArray[np.bool_] = (self._words[places] & bits) == bits
        return found

    def _locate(
        self, keys: npt.NDArray[np.void]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """Give each key's word, and its bits there; both come from bits that don't overlap."""
        raw = np.ascontiguousarray(keys).view(_KEY)
        hashes = raw["hash"].astype(np.uint64)
        places = ((hashes >> np.uint64(32)) * np.uint64(len(self._words))) >> np.uint64(32)
        bits = np.zeros(len(hashes), np.uint64)
        for probe in range(_PROBES):
            bits |= np.uint64(1) << ((hashes >> np.uint64(6 * probe)) & np.uint64(63))
        return places.astype(np.int64), bits
