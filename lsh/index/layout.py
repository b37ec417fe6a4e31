"""The byte layout of buckets, their keys and documents' records.

A bucket's key is its column's number (1 byte), then the band key (8, big-endian), so that the
buckets of a column are adjacent. A bucket is the lowest 31 bits of the numbers of its documents, in
the order in which they came, 4 bytes each, and all bits for `BEYOND`. A document's record is its
sequence number (8 bytes), the time in ms, or a mark of `lsh.index.clock` (8), the number of
shingles (4), the number of slots of its sketch (2), the number of bytes that say which of its
buckets were new (1), the sketch, those bytes, then the id, to the record's end. Renewals are, for
each time or mark, that (8 bytes), how many columns have it (1), and these columns' numbers (1
each). Numbers are little-endian unless stated otherwise.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

__all__ = [
    "BEYOND",
    "MOST_DOCUMENTS",
    "PARTS",
    "Bucket",
    "BucketKeys",
    "Record",
    "Renewals",
    "bucket_lows",
    "entries_of",
    "id_of",
    "lows_of",
    "number_before",
    "numbers_before",
    "pack_buckets",
    "pack_records",
    "pack_renewals",
    "shape_of",
    "sketch_and_new",
    "unpack_bucket",
    "unpack_record",
    "unpack_renewals",
    "with_others",
    "without_sketch",
]

MOST_DOCUMENTS = 1 << 31
"""The most documents that an index has at a time: 31 bits of their numbers are stored."""

Bucket = list[int]
"""The numbers of a bucket's documents, in the order in which they came. An index numbers documents
as it inserts them, from 0. A document that is renewed may get another number. `BEYOND` may
follow."""

BEYOND = -1
"""The last entry of a bucket that has finer ones; see `lsh.index.finer`."""

Renewals = dict[int, int]
"""The times in ms, or marks, of a document's entries that have stood for later ones, by column."""

_KEY = np.dtype([("column", "u1"), ("hash", ">u8")])
_NUMBER = struct.Struct("<I")
_LOW_BITS = MOST_DOCUMENTS - 1
_BEYOND = 0xFFFFFFFF
_RENEWED = struct.Struct("<qB")
_FIXED = struct.Struct("<QqIHB")
_LENGTHS = struct.Struct("<HB")
_LENGTHS_AT = _FIXED.size - _LENGTHS.size
PARTS = [("sequences", "<u8"), ("times", "<i8"), ("shingles", "<u4")]
"""What comes first in a record's bytes: fields of a numpy dtype."""


class BucketKeys(NamedTuple):
    """The keys of n buckets.

    columns: uint8[n]. hashes: uint64[n], the band keys.
    """

    columns: NDArray[np.uint8]
    hashes: NDArray[np.uint64]

    @classmethod
    def none(cls) -> BucketKeys:
        """Return the keys of no buckets."""
        return cls(np.empty(0, np.uint8), np.empty(0, np.uint64))

    @classmethod
    def joined(cls, parts: Sequence[BucketKeys]) -> BucketKeys:
        """Return the keys of several, one after the other."""
        return cls(*map(np.concatenate, zip(cls.none(), *parts, strict=True)))

    def take(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> BucketKeys:
        """Return some of the keys, by their places or a mask."""
        if places.dtype == np.bool_:
            places = np.flatnonzero(places)
        return BucketKeys(self.columns.take(places), self.hashes.take(places))

    def packed(self) -> list[bytes]:
        """Return the bytes of each key."""
        keys = np.empty(len(self.hashes), _KEY)
        keys["column"] = self.columns
        keys["hash"] = self.hashes
        packed: list[bytes] = keys.view(f"V{_KEY.itemsize}").tolist()
        return packed

    @classmethod
    def unpacked(cls, packed: Iterable[bytes]) -> BucketKeys:
        """Return the keys that `packed` packed."""
        keys = np.frombuffer(b"".join(packed), _KEY)
        return cls(keys["column"].copy(), keys["hash"].astype(np.uint64))


class Record(NamedTuple):
    """A document's record.

    time: as of when the document counts, in ms, or a mark of `lsh.index.clock`. new: which of its
    buckets were new when it came, so that it is the only document in those that have not grown: a
    bit for each column of the index, the lowest ones first; no bytes if that isn't known.
    """

    sequence: int
    time: int
    shingles: int
    sketch: bytes
    id: bytes
    new: bytes = b""


def number_before(low: int, end: int) -> int:
    """Return the greatest number below ``end`` whose lowest 31 bits are ``low``."""
    return end - 1 - ((end - 1 - low) & _LOW_BITS)


def numbers_before(lows: NDArray[np.int64], end: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the greatest numbers below ``end`` with these lowest 31 bits: int64[n]."""
    numbers: NDArray[np.int64] = end - 1 - ((end - 1 - lows) & _LOW_BITS)
    return numbers


def lows_of(entries: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return entries as a bucket's bytes have them: uint32[e], little-endian."""
    return np.where(entries == BEYOND, _BEYOND, entries & _LOW_BITS).astype("<u4")


def entries_of(lows: NDArray[np.uint32], end: int) -> NDArray[np.int64]:
    """Return the entries that `lows_of` made these of: int64[e].

    end: the number that the next document gets.
    """
    numbers = numbers_before(lows.astype(np.int64), end)
    return np.where(lows == _BEYOND, BEYOND, numbers)


def pack_buckets(sizes: NDArray[np.int64], entries: NDArray[np.int64]) -> list[bytes]:
    """Return the bytes of buckets: int64[b], their sizes, and int64[e], their entries."""
    packed = lows_of(entries).tobytes()
    ends = (_NUMBER.size * np.cumsum(sizes)).tolist()
    return [packed[start:end] for start, end in pairwise([0, *ends])]


def unpack_bucket(packed: bytes, end: int) -> Bucket:
    """Return the bucket of these bytes.

    end: the number that the next document gets.

    Raises ValueError if the bytes are not whole numbers.
    """
    if len(packed) % _NUMBER.size:
        message = f"{len(packed)} bytes are not whole entries"
        raise ValueError(message)
    lows = struct.unpack(f"<{len(packed) // _NUMBER.size}I", packed)
    return [BEYOND if low == _BEYOND else number_before(low, end) for low in lows]


def bucket_lows(packed: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the buckets of these bytes: int64[b], their sizes, and uint32[e], what they have.

    `entries_of` makes entries of that.

    Raises ValueError if some bytes are not whole numbers.
    """
    lengths = np.fromiter(map(len, packed), np.int64, len(packed))
    sizes, rests = np.divmod(lengths, _NUMBER.size)
    if rests.any():
        message = f"{len(packed[int(rests.argmax())])} bytes are not whole entries"
        raise ValueError(message)
    return sizes, np.frombuffer(b"".join(packed), "<u4")


def pack_renewals(renewals: Renewals) -> bytes:
    """Return the bytes of renewals: for each time, its columns."""
    columns: dict[int, list[int]] = {}
    for column, time in renewals.items():
        columns.setdefault(time, []).append(column)
    return b"".join(_RENEWED.pack(time, len(some)) + bytes(some) for time, some in columns.items())


def unpack_renewals(packed: bytes) -> Renewals:
    """Return the renewals of these bytes.

    Raises ValueError if the bytes are not those of renewals.
    """
    found: Renewals = {}
    start = 0
    while start < len(packed):
        try:
            time, count = _RENEWED.unpack_from(packed, start)
        except struct.error as error:
            message = f"{len(packed)} bytes are not renewals"
            raise ValueError(message) from error
        start += _RENEWED.size + count
        if start > len(packed):
            message = f"{len(packed)} bytes are not renewals"
            raise ValueError(message)
        found |= dict.fromkeys(packed[start - count : start], time)
    return found


def pack_records(  # noqa: PLR0913 -- the parts of a record
    sequences: NDArray[np.uint64],
    times: NDArray[np.int64],
    shingles: NDArray[np.uint32],
    sketches: NDArray[np.uint8],
    ids: Iterable[bytes],
    *,
    new: NDArray[np.bool_] | None = None,
) -> list[bytes]:
    """Return the records of n documents.

    sequences: uint64[n]. times: int64[n], ms. shingles: uint32[n]. sketches: uint8[n, slots].
    ids: n ids. new: bool[n, c], which of their buckets were new; see `Record`.
    """
    count, slots = sketches.shape
    bits = np.empty((count, 0), np.uint8)
    if new is not None:
        bits = np.packbits(new, axis=1, bitorder="little")
    fixed = np.empty(
        count,
        [
            ("sequence", "<u8"),
            ("time", "<i8"),
            ("shingles", "<u4"),
            ("slots", "<u2"),
            ("bits", "u1"),
            ("sketch", "u1", (slots,)),
            ("new", "u1", (bits.shape[1],)),
        ],
    )
    fixed["sequence"] = sequences
    fixed["time"] = times
    fixed["shingles"] = shingles
    fixed["slots"] = slots
    fixed["bits"] = bits.shape[1]
    fixed["sketch"] = sketches
    fixed["new"] = bits
    packed: list[bytes] = fixed.view(f"V{fixed.dtype.itemsize}").tolist()
    return [record + ident for record, ident in zip(packed, ids, strict=True)]


def id_of(packed: bytes) -> bytes:
    """Return the id in the bytes of a record."""
    slots, bits = _LENGTHS.unpack_from(packed, _LENGTHS_AT)
    return packed[_FIXED.size + slots + bits :]


def sketch_and_new(packed: bytes) -> tuple[bytes, bytes]:
    """Return the sketch in the bytes of a record, and what it says about new buckets.

    Raises ValueError if the bytes are not those of a record.
    """
    if len(packed) < _FIXED.size:
        message = f"{len(packed)} bytes are not a record"
        raise ValueError(message)
    slots, bits = _LENGTHS.unpack_from(packed, _LENGTHS_AT)
    after = _FIXED.size + slots
    return packed[_FIXED.size : after], packed[after : after + bits]


def shape_of(packed: bytes) -> bytes:
    """Return bytes that two records share if their sketches, and what they say, are as long."""
    return packed[_LENGTHS_AT : _FIXED.size]


def with_others(packed: bytes) -> bytes:
    """Return a record of the same document, of whose buckets it isn't known which were new."""
    slots, bits = _LENGTHS.unpack_from(packed, _LENGTHS_AT)
    after = _FIXED.size + slots
    lengths = _LENGTHS.pack(slots, 0)
    return packed[:_LENGTHS_AT] + lengths + packed[_FIXED.size : after] + packed[after + bits :]


def without_sketch(packed: bytes) -> bytes:
    """Return the record of a document that no bucket names: its sketch has no slots."""
    return packed[:_LENGTHS_AT] + _LENGTHS.pack(0, 0) + id_of(packed)


def unpack_record(packed: bytes) -> Record:
    """Return the record of these bytes.

    Raises ValueError if they are too few.
    """
    try:
        sequence, time, shingles, slots, bits = _FIXED.unpack_from(packed)
    except struct.error as error:
        message = f"{len(packed)} bytes are not a record"
        raise ValueError(message) from error
    after = _FIXED.size + slots
    ident = after + bits
    if len(packed) < ident:
        message = f"{len(packed)} bytes are not a record of {slots} slots"
        raise ValueError(message)
    sketch, new = packed[_FIXED.size : after], packed[after:ident]
    return Record(sequence, time, shingles, sketch, packed[ident:], new)
