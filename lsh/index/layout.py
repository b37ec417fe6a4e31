"""The byte layout of buckets, their keys and documents' records.

A bucket's key is its column's number (1 byte), then the band key (8, big-endian), so that the
buckets of a column are adjacent. A bucket is its entries, oldest first, 16 bytes each. A
document's record is the number of slots of its sketch (2 bytes), the sketch, the number of
shingles (4), the time in ms (8), then the id, to the record's end. Numbers are little-endian
unless stated otherwise.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

__all__ = [
    "BUCKET_KEY",
    "ENTRY",
    "Bucket",
    "bucket_keys",
    "pack_bucket",
    "pack_entries",
    "pack_records",
    "record_slots",
    "sketch_and_id",
    "smallest_record",
    "unpack_bucket",
    "unpack_entries",
]

BUCKET_KEY = np.dtype([("column", "u1"), ("hash", ">u8")])
"""A bucket's key; arrays of keys are V9[n]."""

ENTRY = np.dtype([("sequence", "<u8"), ("time", "<i8")])
_entry = struct.Struct("<Qq")

_SKETCH_AT = 2
_AFTER_SKETCH = 4 + 8
"""Bytes of a record before its sketch, and between the sketch and the id."""


Bucket = list[tuple[int, int]]
"""A bucket's entries, oldest first: a document's sequence number, and its time in ms."""


def bucket_keys(columns: Sequence[int], keys: NDArray[np.uint64]) -> NDArray[np.void]:
    """Return the keys of buckets, V9[c * n], column by column.

    columns: c numbers of columns.
    keys: uint64[c, n], the band keys of n documents in each.
    """
    count, documents = keys.shape
    raw = np.empty((count, documents, BUCKET_KEY.itemsize), np.uint8)
    raw[:, :, 0] = np.asarray(columns, np.uint8)[:, None]
    raw[:, :, 1:] = np.ascontiguousarray(keys, ">u8").view(np.uint8).reshape(count, documents, 8)
    return raw.view("V9").reshape(-1)


def pack_bucket(bucket: Bucket) -> bytes:
    """Return the bytes of a bucket."""
    return b"".join(_entry.pack(*entry) for entry in bucket)


def unpack_bucket(packed: bytes) -> Bucket:
    """Return the bucket of these bytes."""
    return list(_entry.iter_unpack(packed))


def pack_entries(sequences: NDArray[np.uint64], times: NDArray[np.int64]) -> list[bytes]:
    """Return the bytes of n buckets of one entry each."""
    entries = np.empty(len(sequences), ENTRY)
    entries["sequence"] = sequences
    entries["time"] = times
    packed: list[bytes] = entries.view(f"V{ENTRY.itemsize}").tolist()
    return packed


def unpack_entries(packed: Iterable[bytes]) -> NDArray[np.void]:
    """Return the entries of all these buckets, one after the other, as an array of `ENTRY`."""
    return np.frombuffer(b"".join(packed), ENTRY)


def pack_records(
    sketches: NDArray[np.uint8],
    shingles: NDArray[np.uint32],
    times: NDArray[np.int64],
    ids: Iterable[bytes],
) -> list[bytes]:
    """Return the records of n documents.

    sketches: uint8[n, slots]. shingles: uint32[n]. times: int64[n], ms. ids: n ids.
    """
    count, slots = sketches.shape
    fixed = np.empty(
        count,
        [("slots", "<u2"), ("sketch", "u1", (slots,)), ("shingles", "<u4"), ("time", "<i8")],
    )
    fixed["slots"] = slots
    fixed["sketch"] = sketches
    fixed["shingles"] = shingles
    fixed["time"] = times
    packed: list[bytes] = fixed.view(f"V{fixed.dtype.itemsize}").tolist()
    return [record + ident for record, ident in zip(packed, ids, strict=True)]


def record_slots(record: bytes) -> int:
    """Return how many slots a record's sketch has."""
    return int.from_bytes(record[:_SKETCH_AT], "little")


def smallest_record(slots: int) -> int:
    """Return the size in bytes of a record whose id is empty."""
    return _SKETCH_AT + slots + _AFTER_SKETCH


def sketch_and_id(record: bytes) -> tuple[bytes, bytes]:
    """Return a record's sketch and id."""
    after = _SKETCH_AT + (record[0] | record[1] << 8)
    return record[_SKETCH_AT:after], record[after + _AFTER_SKETCH :]
