"""The keys of a shard's store, in order, and how its header and progress are packed.

=================  ==========================================================================
``f6``             verdicts of documents, by number (8 bytes)
``f7``             pages of records that had a document which was forgotten (8 bytes): that is still
                   in the files of the store
``f8``             earlier documents with the same id, by number (8 bytes)
``f9``             renewals of documents, by number (8 bytes)
``fa``             grown buckets, by era (4 bytes), column and key
``fb``             pages of cells, by run, slot of the column, and page
``fc``             filters of runs, in parts: by run, slot of the column, and first page
``fd``             cells of the memtable, by the number of the first document of a write (8 bytes)
``fe``             pages of document records, by number (8 bytes)
``ffcorrections``  what people have corrected; only shard 0 has it
``ffgone``         is there if a document was ever forgotten
``ffheader``       the store's header, JSON; it is past every range above
``ffprogress``     how far the store is; see `Progress`
``ffruns``         the runs
``fftiles``        which documents it has covered; see `worker.stages.order`
=================  ==========================================================================

Numbers in keys are big-endian. The core defines all values but those of ``f7``, the header, the
progress, the corrections and the tiles; see `core/src/index/shard/keyspace.rs`.
"""

from __future__ import annotations

import json
import struct
from binascii import crc32
from pathlib import Path
from typing import Final, NamedTuple

from lsh.index import NO_TIME
from worker.index.errors import HeaderMismatch, StoreDamaged
from worker.untrusted import NOT_READ


class Range(NamedTuple):
    """A half-open range of keys."""

    low: bytes
    high: bytes


VERDICTS: Final = Range(b"\xf6", b"\xf7")
FORGOTTEN: Final = Range(b"\xf7", b"\xf8")
ID_LISTS: Final = Range(b"\xf8", b"\xf9")
RENEWALS: Final = Range(b"\xf9", b"\xfa")
GROWN: Final = Range(b"\xfa", b"\xfb")
CELLS: Final = Range(b"\xfb", b"\xfc")
FILTERS: Final = Range(b"\xfc", b"\xfd")
OPEN_RUN: Final = Range(b"\xfd", b"\xfe")
RECORDS: Final = Range(b"\xfe", b"\xff")
CORRECTIONS: Final = b"\xffcorrections"
GONE: Final = b"\xffgone"
HEADER: Final = b"\xffheader"
PROGRESS: Final = b"\xffprogress"
RUNS: Final = b"\xffruns"
COVERAGE: Final = b"\xfftiles"

_progress = struct.Struct("<qqq")
_now = struct.Struct("<q")
_sum = struct.Struct("<I")
_place = struct.Struct(">cIBI")
_run = struct.Struct(">cI")
_era = struct.Struct(">cI")
_number = struct.Struct(">cQ")


class Progress(NamedTuple):
    """The progress of a store.

    ``offset`` is the next offset to read in the log; ``documents`` is how many were judged;
    ``inserted`` is how many of these have a record; ``clock`` is what they all say about the time,
    as the core stores it: None until there is a document.
    """

    offset: int = 0
    documents: int = 0
    inserted: int = 0
    clock: bytes | None = None

    @property
    def now(self) -> int | None:
        """Return the index's time, in ms; None until there is one."""
        now = NO_TIME if self.clock is None else int(_now.unpack_from(self.clock)[0])
        return None if now == NO_TIME else now

    def pack(self) -> bytes:
        """Return the packed bytes, with their checksum."""
        packed = _progress.pack(*self[:3]) + (self.clock or b"")
        return packed + _sum.pack(crc32(packed))

    @classmethod
    def unpack(cls, packed: bytes | None) -> Progress:
        """Return the progress that `pack` packed; an empty store's if there is none.

        Raises:
            ValueError: it is something else.
        """
        if packed is None:
            return cls()
        end = len(packed) - _sum.size
        clock = packed[_progress.size : end]
        if end < _progress.size or 0 < len(clock) < _now.size:
            raise ValueError(f"its progress can't be read: it has {len(packed)} bytes")
        if packed[end:] != _sum.pack(crc32(packed[:end])):
            raise ValueError("its progress can't be read: it differs from what was written")
        offset, documents, inserted = _progress.unpack_from(packed)
        return cls(offset, documents, inserted, clock or None)


def grown_key(era: int, bucket: bytes) -> bytes:
    """Return the key of what a bucket with this key has grown to in an era."""
    return _era.pack(GROWN.low, era) + bucket


def page_key(run: int, slot: int, page: int) -> bytes:
    """Return the key of a page of cells."""
    return _place.pack(CELLS.low, run, slot, page)


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


FORMAT_VERSION = 14
"""Earlier versions have other keys or values, or were judged by other rules; none is read."""

StoreHeader = dict[str, str | int | float | bool]


def pack_header(header: StoreHeader) -> bytes:
    """Return the bytes of a store's header, with the version of its format."""
    return json.dumps({"format": FORMAT_VERSION, **header}, sort_keys=True).encode()


def unpack_header(packed: bytes, path: Path) -> StoreHeader:
    """Return the header that `pack_header` packed, without the version.

    Raises:
        StoreDamaged: it can't be read.
    """
    header = _load(packed, path)
    header.pop("format", None)
    return header


def check_header(packed: bytes, wanted: StoreHeader, path: Path) -> None:
    """Check the header of a store against the one that is wanted.

    Raises:
        HeaderMismatch: they differ; the message says how.
        StoreDamaged: it can't be read.
    """
    found = _load(packed, path)
    version = found.pop("format", None)
    if version != FORMAT_VERSION:
        raise HeaderMismatch(
            f"{path} has format {version}, and this neardup reads {FORMAT_VERSION}:"
            " begin with a new index, or run the version that made this one"
        )
    if found == wanted:
        return
    differences = [
        f"{name}: it has {found.get(name, 'none')}, the settings say {wanted.get(name, 'none')}"
        for name in sorted(found.keys() | wanted.keys())
        if found.get(name) != wanted.get(name)
    ]
    raise HeaderMismatch(f"{path} was made with other parameters ({'; '.join(differences)})")


def _load(packed: bytes, path: Path) -> StoreHeader:
    try:
        return dict(json.loads(packed))
    except (*NOT_READ, TypeError) as error:
        raise StoreDamaged(f"{path}: its header can't be read: {error}") from error
