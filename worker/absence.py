"""Which buckets surely don't exist, told without asking RocksDB.

On a feed of mostly new documents nearly every look-up is of a bucket that isn't there.
RocksDB has filters against that, too, but to ask it costs ten times as much as this, and
a hundred times as much when it has just been opened.
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

__all__ = ["BUCKETS_BELOW", "BucketFilter", "ReadingEnded", "StoredFilter", "span"]

_log = logging.getLogger(__name__)

BUCKETS_BELOW = 0xFC
"""Key prefix of a store: a band's number, below this, then the band key (8 bytes, big-endian)."""
_COPY = b"\xfc"
_ADDED = b"\xfd"
_PAST = b"\xfe"
_STATE = b"\xffkeys"
_state = struct.Struct("<qq")
"""The filter's size in bytes, and that of its copy: the same, or 0."""
_place = struct.Struct(">Q")
_number = struct.Struct(">H")
_CHUNK_BYTES = 256 << 10
_ENTRY_BYTES = 256
"""What it costs to read what one write has added, however little that is."""
_SLICE = 100_000

_KEY = np.dtype([("band", "u1"), ("hash", ">u8")])
_PROBES = 3


class ReadingEnded(Exception):  # noqa: N818 -- says what was found
    """A range of a store can't be read to its end."""


class BucketFilter:
    """A Bloom filter of fixed size over bucket keys: a band's number, then 64 hashed bits.

    All of a key's bits are in one word, so that a look-up is one access to memory
    (Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", WEA 2007).
    At 16 bits a key, one absent bucket in a hundred is asked for in vain; a filter that
    is full lets everything pass, which costs time and nothing else.
    """

    def __init__(self, size_bytes: int) -> None:
        """Begin with no bucket; takes about ``size_bytes``, for ever."""
        self._words = np.frombuffer(_pages(_whole(size_bytes)), np.uint64)

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

    def dump(self) -> bytes:
        """Give its content, for `load`."""
        return self._words.tobytes()

    def load(self, content: bytes) -> None:
        """Become the filter of this content, which is of this filter's size."""
        self._words[:] = np.frombuffer(content, np.uint64)


class StoredFilter:
    """The filter of a store, kept in that store: so it is as far as the buckets in any crash.

    With each write go the keys that it adds. Once these take as much space as the filter,
    a copy of it takes their place. Methods raise what rocksdict raises.
    """

    def __init__(
        self,
        db: Rdict,
        size_bytes: int,
        on_keys: Callable[[int, int], None] = lambda _count, _total: None,
    ) -> None:
        """Read it; if there is none of this size, it is made of all buckets.

        That takes about a second for a million keys. ``on_keys`` is told how many more were
        read, and RocksDB's estimate of all; it may raise.

        Raises:
            ReadingEnded: not everything can be read.
        """
        self._filter = BucketFilter(size_bytes)
        self.size_bytes = self._filter.size_bytes
        self._added = 0
        self._next = 0
        self._stored = True
        size, copied = _sizes(db)
        if size == self.size_bytes:
            self._read(db, copied)
        else:
            self._make(db, on_keys)

    @staticmethod
    def begin(batch: WriteBatch, size_bytes: int) -> None:
        """Say of a new store that it has a filter, which is empty."""
        batch.put(_STATE, _state.pack(_whole(size_bytes), 0))

    @classmethod
    def of(cls, db: Rdict) -> StoredFilter | None:
        """Read a store's filter, whatever its size; None if it has none.

        Raises:
            ReadingEnded: not everything can be read.
        """
        size, _ = _sizes(db)
        return cls(db, size) if size else None

    def may_hold(self, keys: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
        """Tell of each key, V9[n], whether its bucket may exist: bool[n]. What is False doesn't."""
        return self._filter.may_hold(keys)

    def add(self, batch: WriteBatch, keys: Sequence[npt.NDArray[np.void]]) -> None:
        """Note the buckets that a write adds, and have the write keep them.

        Before it is written: of buckets that never come to be, nobody is told a wrong thing.
        """
        for some in keys:
            self._filter.add(some)
        added = b"".join(some.tobytes() for some in keys)
        self._added += len(added) + _ENTRY_BYTES
        if self._stored and self._added < self.size_bytes:
            batch.put(_ADDED + _place.pack(self._next), added)
            self._next += 1
            return
        batch.delete_range(_COPY, _PAST)
        content = self._filter.dump()
        for number, first in enumerate(range(0, len(content), _CHUNK_BYTES)):
            batch.put(_COPY + _number.pack(number), content[first : first + _CHUNK_BYTES])
        batch.put(_STATE, _state.pack(self.size_bytes, self.size_bytes))
        self._added = 0
        self._stored = True

    def _read(self, db: Rdict, copied: int) -> None:
        content = b"".join(value for _, value in span(db, _COPY, _ADDED))
        if len(content) != copied:
            raise ReadingEnded(f"{len(content)} of its {copied} bytes are there")
        if content:
            self._filter.load(content)
        for key, added in span(db, _ADDED, _PAST):
            (last,) = _place.unpack(key[1:])
            self._next = last + 1
            self._filter.add(np.frombuffer(added, "V9"))
            self._added += len(added) + _ENTRY_BYTES

    def _make(self, db: Rdict, on_keys: Callable[[int, int], None]) -> None:
        total = int(db.property_int_value("rocksdb.estimate-num-keys") or 0)
        keys = (key for key, _ in span(db, b"", bytes([BUCKETS_BELOW])))
        while some := list(islice(keys, _SLICE)):
            self._filter.add(np.frombuffer(b"".join(some), "V9"))
            on_keys(len(some), total)
        self._stored = False
        _log.info("made a filter of %d bytes from all buckets", self.size_bytes)


def _whole(size_bytes: int) -> int:
    return max(8, size_bytes // 8 * 8)


def _pages(size_bytes: int) -> mmap.mmap:
    """Give zeroed memory that is the system's again, all of it, once nobody has it.

    malloc may take as much from the heap of the thread that opens a store, and keep it.
    """
    pages = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # Of a kernel that has none: then look-ups take a little longer.
            pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


def _sizes(db: Rdict) -> tuple[int, int]:
    state = cast("bytes | None", db.get(_STATE))
    size, copied = _state.unpack(state) if state else (0, 0)
    return size, copied


def span(db: Rdict, low: bytes, high: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Give what lies in a half-open range of keys, in order.

    rocksdict's iterator just ends at a block that it can't read. It has read all of the
    range only if it comes to a key past it, and every store has some: its header.

    Raises:
        ReadingEnded: it has not.
    """
    pairs = db.items(from_key=low) if low else db.items()
    for key, value in cast("Iterator[tuple[bytes, bytes]]", pairs):
        if key >= high:
            return
        yield key, value
    raise ReadingEnded(f"a block past {low.hex() or 'the start'} can't be read")
