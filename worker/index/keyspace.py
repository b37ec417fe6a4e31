"""The keys of a shard's store, in order, and how keys and small values are packed.

===============  ==========================================================================
``f6``           verdicts of documents, by number (8 bytes); see `lsh.index.verdicts`
``f7``           pages of records that had a document which was forgotten (8 bytes): that is still
                 in the files of the store; the value is when that was noted, in ms
``f8``           an earlier document with the same id, by number (8 bytes); see `identities`
``f9``           renewals of documents, by number (8 bytes); see `lsh.index.layout`
``fa``           grown buckets, by era (4 bytes) and their keys; see `eras` and `lsh.index.layout`
``fb``           pages of cells, by run, slot of the column, and page; see `run_layout`
``fc``           filters of runs, in parts: by run, slot of the column, and first page
``fd``           cells of the open run, by the number of the first document of a write (8 bytes)
``fe``           pages of document records, by number (8 bytes); see `record_pages`
``ffgone``       is there, without a value, if a document was ever forgotten
``ffheader``     the store's header, JSON; it is past every range above
``ffprogress``   how far the store is; see `Progress`
``ffruns``       the runs, JSON; see `run_list`
``fftiles``      which documents it has covered; see `worker.stages.coverage`
===============  ==========================================================================

Numbers in keys are big-endian.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from lsh.index.clock import Clock

__all__ = [
    "CELLS",
    "COVERAGE",
    "FILTERS",
    "FORGOTTEN",
    "GONE",
    "GROWN",
    "HEADER",
    "OPEN_RUN",
    "PREVIOUS",
    "PROGRESS",
    "RECORDS",
    "RENEWALS",
    "RUNS",
    "VERDICTS",
    "Place",
    "Progress",
    "Range",
    "filter_key",
    "grown_key",
    "grown_keys",
    "grown_place",
    "number_in",
    "number_key",
    "of_run",
    "pack_number",
    "page_key",
    "place_in",
    "unpack_number",
]


class Range(NamedTuple):
    """A half-open range of keys."""

    low: bytes
    high: bytes


VERDICTS: Final = Range(b"\xf6", b"\xf7")
FORGOTTEN: Final = Range(b"\xf7", b"\xf8")
PREVIOUS: Final = Range(b"\xf8", b"\xf9")
RENEWALS: Final = Range(b"\xf9", b"\xfa")
GROWN: Final = Range(b"\xfa", b"\xfb")
CELLS: Final = Range(b"\xfb", b"\xfc")
FILTERS: Final = Range(b"\xfc", b"\xfd")
OPEN_RUN: Final = Range(b"\xfd", b"\xfe")
RECORDS: Final = Range(b"\xfe", b"\xff")
GONE: Final = b"\xffgone"
HEADER: Final = b"\xffheader"
PROGRESS: Final = b"\xffprogress"
RUNS: Final = b"\xffruns"
COVERAGE: Final = b"\xfftiles"

_progress = struct.Struct("<qqq")
_place = struct.Struct(">cIBI")
_run = struct.Struct(">cI")
_era = struct.Struct(">cI")
_number = struct.Struct(">cQ")
_value = struct.Struct("<q")


class Progress(NamedTuple):
    """How far a store is.

    ``offset`` is the next offset to read in the log; ``documents`` is how many were judged;
    ``inserted`` is how many of these have a record; ``clock`` is what they all say about the time.
    """

    offset: int = 0
    documents: int = 0
    inserted: int = 0
    clock: Clock = Clock()

    def pack(self) -> bytes:
        """Return the packed bytes."""
        return _progress.pack(*self[:3]) + self.clock.packed()

    @classmethod
    def unpack(cls, packed: bytes | None) -> Progress:
        """Return the progress that `pack` packed; an empty store's if there is none.

        Raises:
            ValueError: it is something else.
        """
        if packed is None:
            return cls()
        try:
            offset, documents, inserted = _progress.unpack_from(packed)
            clock = Clock.unpacked(packed[_progress.size :])
        except (struct.error, ValueError) as error:
            raise ValueError(f"its progress can't be read: {error}") from error
        return cls(offset, documents, inserted, clock)


class Place(NamedTuple):
    """The place of a page, or of a part of a filter: a run, a column's slot, a page."""

    run: int
    slot: int
    page: int


def grown_key(era: int, bucket: bytes) -> bytes:
    """Return the key of what a bucket with this key has grown to in an era."""
    return _era.pack(GROWN.low, era) + bucket


def grown_keys(eras: npt.NDArray[np.int64], buckets: npt.NDArray[np.void]) -> list[bytes]:
    """Return the keys of what n buckets have grown to in n eras; see `grown_key`."""
    keys = np.empty(
        len(eras), [("kind", "S1"), ("era", ">u4"), ("bucket", f"V{buckets.dtype.itemsize}")]
    )
    keys["kind"], keys["era"], keys["bucket"] = GROWN.low, eras, buckets
    packed: list[bytes] = keys.view(f"V{keys.dtype.itemsize}").tolist()
    return packed


def grown_place(key: bytes) -> tuple[int, bytes]:
    """Return the era and the bucket's key in a key that `grown_key` made.

    Raises:
        ValueError: it is no such key.
    """
    try:
        return int(_era.unpack_from(key)[1]), key[_era.size :]
    except struct.error as error:
        raise ValueError(f"{key.hex()} is not the key of a grown bucket") from error


def page_key(run: int, slot: int, page: int) -> bytes:
    """Return the key of a page of cells."""
    return _place.pack(CELLS.low, run, slot, page)


def filter_key(run: int, slot: int, page: int) -> bytes:
    """Return the key of the part of a run's filter that begins at a page."""
    return _place.pack(FILTERS.low, run, slot, page)


def place_in(key: bytes) -> Place:
    """Return the place in a key that `page_key` or `filter_key` made.

    Raises:
        ValueError: it is no such key.
    """
    try:
        return Place(*_place.unpack(key)[1:])
    except struct.error as error:
        raise ValueError(f"{key.hex()} is not the key of a page") from error


def of_run(kind: Range, run: int) -> Range:
    """Return the range of one run in `CELLS` or `FILTERS`."""
    return Range(_run.pack(kind.low, run), _run.pack(kind.low, run + 1))


def number_key(kind: Range, number: int) -> bytes:
    """Return the key of a number in `OPEN_RUN`, `RECORDS` and the like."""
    return _number.pack(kind.low, number)


def number_in(key: bytes) -> int:
    """Return the number in a key that `number_key` made.

    Raises:
        ValueError: it is no such key.
    """
    try:
        return int(_number.unpack(key)[1])
    except struct.error as error:
        raise ValueError(f"{key.hex()} is not the key of a number") from error


def pack_number(number: int) -> bytes:
    """Return the bytes of a value that is a number."""
    return _value.pack(number)


def unpack_number(packed: bytes) -> int:
    """Return the number that `pack_number` packed.

    Raises:
        ValueError: it has another length.
    """
    try:
        return int(_value.unpack(packed)[0])
    except struct.error as error:
        raise ValueError(f"{packed.hex()} is not a number") from error
