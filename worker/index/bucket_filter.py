"""A filter that rules out absent buckets without asking RocksDB.

On a feed of mostly new documents, nearly every look-up is of an absent bucket. RocksDB has
filters for that, too, but asking it costs ten times as much as this filter, and a hundred times
as much when it has just been opened.
"""

from __future__ import annotations

import logging
import mmap
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import cast

import numpy as np
import numpy.typing as npt
from rocksdict import Rdict, WriteBatch

from lsh.index.layout import BUCKET_KEY
from worker.index.keyspace import (
    BUCKETS,
    FILTER_ADDED,
    FILTER_COPY,
    FILTER_SIZES,
    Range,
    added_key,
    added_number,
    copy_key,
)

__all__ = ["BucketFilter", "ReadingEnded", "StoredFilter", "span"]

_log = logging.getLogger(__name__)

_sizes = struct.Struct("<qq")
"""The filter's size in bytes, and its stored copy's: the same size, or 0."""
_CHUNK_BYTES = 256 << 10
_ENTRY_BYTES = 256
"""The fixed cost of reading the keys that one write has added, expressed in bytes."""
_SLICE = 100_000

_PROBES = 3


class ReadingEnded(Exception):
    """A range of a store can't be read to its end."""


class BucketFilter:
    """A Bloom filter of fixed size over bucket keys: a column's number, then 64 hashed bits.

    All of a key's bits are in one word, so that a look-up is one memory access
    (Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", WEA 2007).
    At 16 bits per key, one absent bucket in a hundred passes. A full filter passes every
    key, which only costs time.
    """

    def __init__(self, size_bytes: int) -> None:
        """Begin with no bucket. The size is fixed at about ``size_bytes``."""
        self._words = np.frombuffer(_pages(_whole(size_bytes)), np.uint64)

    @property
    def size_bytes(self) -> int:
        """Return the size in memory."""
        return self._words.nbytes

    def add(self, keys: npt.NDArray[np.void]) -> None:
        """Add buckets by their keys, V9[n]."""
        places, bits = self._locate(keys)
        while len(places):
            # If keys share a word, one of them sets its bits in each round.
            self._words[places] |= bits
            left = (self._words[places] & bits) != bits
            places, bits = places[left], bits[left]

    def may_hold(self, keys: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
        """Return whether the bucket of each key, V9[n], may exist: bool[n]. False is certain."""
        places, bits = self._locate(keys)
        found: npt.NDArray[np.bool_] = (self._words[places] & bits) == bits
        return found

    def _locate(
        self, keys: npt.NDArray[np.void]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """Return each key's word, and its bits there. They use disjoint bits of the hash."""
        raw = np.ascontiguousarray(keys).view(BUCKET_KEY)
        hashes = raw["hash"].astype(np.uint64)
        places = ((hashes >> np.uint64(32)) * np.uint64(len(self._words))) >> np.uint64(32)
        bits = np.zeros(len(hashes), np.uint64)
        for probe in range(_PROBES):
            bits |= np.uint64(1) << ((hashes >> np.uint64(6 * probe)) & np.uint64(63))
        return places.astype(np.int64), bits

    def dump(self) -> bytes:
        """Return the content for `load`."""
        return self._words.tobytes()

    def load(self, content: bytes) -> None:
        """Replace the content by another of the same size."""
        self._words[:] = np.frombuffer(content, np.uint64)


class StoredFilter:
    """The filter of a store, stored in that store, so that both stay consistent in a crash.

    Each write includes the keys that it adds. Once these take as much space as the filter,
    a copy of the filter replaces them. Methods raise what rocksdict raises.
    """

    def __init__(
        self,
        db: Rdict,
        size_bytes: int,
        on_keys: Callable[[int, int], None] = lambda _count, _total: None,
    ) -> None:
        """Read the stored filter; if there is none of this size, build it from all buckets.

        Building takes about a second per million keys. ``on_keys`` is called with the number of
        keys just read and RocksDB's estimate of the total; it may raise.

        Raises:
            ReadingEnded: not everything can be read.
        """
        self._filter = BucketFilter(size_bytes)
        self.size_bytes = self._filter.size_bytes
        self._added = 0
        self._next = 0
        self._stored = True
        size, copied = _stored_sizes(db)
        if size == self.size_bytes:
            self._read(db, copied)
        else:
            self._make(db, on_keys)

    @staticmethod
    def begin(batch: WriteBatch, size_bytes: int) -> None:
        """Add an empty filter to the first write of a new store."""
        batch.put(FILTER_SIZES, _sizes.pack(_whole(size_bytes), 0))

    @classmethod
    def of(cls, db: Rdict) -> StoredFilter | None:
        """Return a store's filter, whatever its size; None if it has none.

        Raises:
            ReadingEnded: not everything can be read.
        """
        size, _ = _stored_sizes(db)
        return cls(db, size) if size else None

    def may_hold(self, keys: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
        """Return whether the bucket of each key, V9[n], may exist: bool[n]. False is certain."""
        return self._filter.may_hold(keys)

    def add(self, batch: WriteBatch, keys: Sequence[npt.NDArray[np.void]]) -> None:
        """Add the buckets of a write to the filter, and their keys to the write.

        Call it before writing. If the write fails, the additional keys do no harm.
        """
        for some in keys:
            self._filter.add(some)
        added = b"".join(some.tobytes() for some in keys)
        self._added += len(added) + _ENTRY_BYTES
        if self._stored and self._added < self.size_bytes:
            batch.put(added_key(self._next), added)
            self._next += 1
            return
        batch.delete_range(FILTER_COPY.low, FILTER_ADDED.high)
        content = self._filter.dump()
        for number, first in enumerate(range(0, len(content), _CHUNK_BYTES)):
            batch.put(copy_key(number), content[first : first + _CHUNK_BYTES])
        batch.put(FILTER_SIZES, _sizes.pack(self.size_bytes, self.size_bytes))
        self._added = 0
        self._stored = True

    def _read(self, db: Rdict, copied: int) -> None:
        content = b"".join(value for _, value in span(db, FILTER_COPY))
        if len(content) != copied:
            raise ReadingEnded(f"it has {len(content)} of {copied} bytes")
        if content:
            self._filter.load(content)
        for key, added in span(db, FILTER_ADDED):
            self._next = added_number(key) + 1
            self._filter.add(np.frombuffer(added, "V9"))
            self._added += len(added) + _ENTRY_BYTES

    def _make(self, db: Rdict, on_keys: Callable[[int, int], None]) -> None:
        total = int(db.property_int_value("rocksdb.estimate-num-keys") or 0)
        keys = (key for key, _ in span(db, BUCKETS))
        while some := list(islice(keys, _SLICE)):
            self._filter.add(np.frombuffer(b"".join(some), "V9"))
            on_keys(len(some), total)
        self._stored = False
        _log.info("built a filter of %d bytes from all buckets", self.size_bytes)


def _whole(size_bytes: int) -> int:
    return max(8, size_bytes // 8 * 8)


def _pages(size_bytes: int) -> mmap.mmap:
    """Return zeroed memory that goes back to the system as soon as it is released.

    malloc might take it from the heap of the thread that opens a store, and keep it.
    """
    pages = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # The kernel may lack huge pages; look-ups are then a bit slower.
            pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


def _stored_sizes(db: Rdict) -> tuple[int, int]:
    stored = cast("bytes | None", db.get(FILTER_SIZES))
    size, copied = _sizes.unpack(stored) if stored else (0, 0)
    return size, copied


def span(db: Rdict, keys: Range) -> Iterator[tuple[bytes, bytes]]:
    """Return the keys and values in a range of keys, in order.

    rocksdict's iterator silently ends at a block that it can't read. The range was read
    completely only if a key past it follows. Every store has one: its header.

    Raises:
        ReadingEnded: no key past the range follows.
    """
    low, high = keys
    pairs = db.items(from_key=low) if low else db.items()
    for key, value in cast("Iterator[tuple[bytes, bytes]]", pairs):
        if key >= high:
            return
        yield key, value
    raise ReadingEnded(f"a block past {low.hex() or 'the start'} can't be read")
