"""The keys of a shard's store, in order, and how keys and small values are packed.

===============  ==========================================================================
below ``fc``     buckets, by their keys; see `lsh.index.layout`
``fc``           the copy of the filter, in chunks, by number (2 bytes)
``fd``           keys added to the filter since that copy, by number of the write (8 bytes)
``fe``           document records, by sequence number (8 bytes)
``ffheader``     the store's header, JSON; it is past every range above
``ffkeys``       the filter's size, and its copy's
``ffprogress``   how far the store is; see `Progress`
``fftiles``      which documents it has covered; see `worker.stages.coverage`
===============  ==========================================================================

Numbers in keys are big-endian.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "BUCKETS",
    "COVERAGE",
    "FILTER_ADDED",
    "FILTER_COPY",
    "FILTER_SIZES",
    "HEADER",
    "PROGRESS",
    "RECORDS",
    "Progress",
    "Range",
    "added_key",
    "added_number",
    "copy_key",
    "is_bucket",
    "record_key",
    "record_keys",
    "sequence_of",
]


class Range(NamedTuple):
    """A half-open range of keys."""

    low: bytes
    high: bytes


BUCKETS: Final = Range(b"", b"\xfc")
FILTER_COPY: Final = Range(b"\xfc", b"\xfd")
FILTER_ADDED: Final = Range(b"\xfd", b"\xfe")
RECORDS: Final = Range(b"\xfe", b"\xffheader")
HEADER: Final = b"\xffheader"
FILTER_SIZES: Final = b"\xffkeys"
PROGRESS: Final = b"\xffprogress"
COVERAGE: Final = b"\xfftiles"

_progress = struct.Struct("<qqq")
_wide = struct.Struct(">Q")
_narrow = struct.Struct(">H")


class Progress(NamedTuple):
    """How far a store is.

    ``offset`` is the next offset to read in the log; ``now`` is the log's time there in ms;
    ``documents`` is how many were judged, which earlier versions did not count.
    """

    offset: int = 0
    now: int = 0
    documents: int = 0

    def pack(self) -> bytes:
        """Return the packed bytes."""
        return _progress.pack(*self)

    @classmethod
    def unpack(cls, packed: bytes | None) -> Progress:
        """Return the progress that `pack` packed; an empty store's if there is none.

        Raises:
            ValueError: it is longer.
        """
        try:
            return cls(*_progress.unpack((packed or b"").ljust(_progress.size, b"\0")))
        except struct.error as error:
            raise ValueError(f"its progress can't be read: {error}") from error


def is_bucket(key: bytes) -> bool:
    """Return whether a key belongs to a bucket."""
    return key < BUCKETS.high


def record_key(sequence: int) -> bytes:
    """Return the key of a document's record."""
    return RECORDS.low + _wide.pack(sequence)


def record_keys(sequences: npt.NDArray[np.uint64]) -> list[bytes]:
    """Return the keys of documents' records."""
    keys = np.empty((len(sequences), 1 + _wide.size), np.uint8)
    keys[:, 0] = RECORDS.low[0]
    keys[:, 1:] = sequences.astype(">u8").view(np.uint8).reshape(-1, _wide.size)
    packed: list[bytes] = keys.view("V9").reshape(-1).tolist()
    return packed


def sequence_of(key: bytes) -> int:
    """Return the sequence number in a record's key."""
    return int.from_bytes(key[1:], "big")


def copy_key(chunk: int) -> bytes:
    """Return the key of a chunk of the filter's copy, by its number."""
    return FILTER_COPY.low + _narrow.pack(chunk)


def added_key(write: int) -> bytes:
    """Return the key of a write's additions to the filter, by number of the write."""
    return FILTER_ADDED.low + _wide.pack(write)


def added_number(key: bytes) -> int:
    """Return the number of the write in a key that `added_key` made."""
    return int.from_bytes(key[1:], "big")
