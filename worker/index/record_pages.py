"""Pages of document records.

A page has the records of 8 documents with successive numbers: how many there are (2 bytes), the
length of each (2 bytes each), then the records. The last page of a store is written again until
it is full. Numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt
from rocksdict import WriteBatch

from lsh.index.records import Records
from worker.index.keyspace import GONE, RECORDS, Range, number_key
from worker.index.recent_records import RecentPages, RecentRecords

__all__ = ["DOCUMENTS_A_PAGE", "RecordPages", "unpack_page"]

_BITS = 3
DOCUMENTS_A_PAGE = 1 << _BITS
_count = struct.Struct("<H")


def unpack_page(page: bytes) -> list[bytes]:
    """Return the records in a page.

    Raises:
        ValueError: it isn't a page.
    """
    lengths, first = _lengths(page)
    ends = list(accumulate(lengths, initial=first))
    return [page[start:end] for start, end in pairwise(ends)]


def _lengths(page: bytes) -> tuple[tuple[int, ...], int]:
    """Return the lengths of a page's records, and where the first begins."""
    try:
        (count,) = _count.unpack_from(page)
        lengths = struct.unpack_from(f"<{count}H", page, _count.size)
    except struct.error as error:
        raise ValueError(f"{len(page)} bytes are not a page of records") from error
    first = _count.size * (1 + count)
    if first + sum(lengths) != len(page):
        raise ValueError(f"{len(page)} bytes are not a page of {count} records")
    return lengths, first


def _some(page: bytes, places: Sequence[int]) -> list[bytes | None]:
    """Return some records of a page; None where it has fewer."""
    lengths, first = _lengths(page)
    ends = list(accumulate(lengths, initial=first))
    return [page[ends[at] : ends[at + 1]] if at < len(lengths) else None for at in places]


def _packed(records: Sequence[bytes]) -> bytes:
    lengths = struct.pack(f"<{1 + len(records)}H", len(records), *map(len, records))
    return b"".join([lengths, *records])


def _keys(pages: Sequence[int]) -> list[bytes]:
    return [number_key(RECORDS, page) for page in pages]


class RecordPages:
    """The records of a store, by the numbers of their documents."""

    def __init__(
        self,
        get: Callable[[list[bytes]], list[bytes | None]],
        inserted: int,
        recent: RecentRecords | None = None,
        newest: RecentPages | None = None,
    ) -> None:
        """Read the last page. ``get`` reads keys; ``inserted`` is how many documents there are.

        ``all_kept`` is whether none of them was ever forgotten.

        ``recent`` keeps the records that were read lately, ``newest`` the pages that were written.

        Raises:
            ValueError: the page is missing, or isn't as it was written.
        """
        self._get = get
        self._open: list[bytes] = []
        self.recent = recent or RecentRecords()
        self._newest = newest or RecentPages()
        self.inserted = inserted
        self.all_kept = get([GONE]) == [None]
        if inserted % DOCUMENTS_A_PAGE:
            (page,) = get([number_key(RECORDS, inserted >> _BITS)])
            self._open = unpack_page(page or b"")
            if len(self._open) != inserted % DOCUMENTS_A_PAGE:
                raise ValueError(f"its last page has {len(self._open)} of {inserted} records")

    @property
    def recent_bytes(self) -> int:
        """Return about how much memory the records take that are kept for the next reading."""
        return self.recent.size_bytes + self._newest.size_bytes

    def add(self, batch: WriteBatch, records: Sequence[bytes]) -> None:
        """Add records to a write."""
        self.recent.put_new(self.inserted, records)
        left = [*self._open, *records]
        page = self.inserted >> _BITS
        self.inserted += len(left) - len(self._open)
        for first in range(0, len(left), DOCUMENTS_A_PAGE):
            some = left[first : first + DOCUMENTS_A_PAGE]
            packed = _packed(some)
            batch.put(number_key(RECORDS, page), packed)
            self._newest.put(page, packed)
            page += 1
        full = len(left) // DOCUMENTS_A_PAGE * DOCUMENTS_A_PAGE
        self._open = left[full:]

    def forget(self, batch: WriteBatch, numbers: Sequence[int]) -> set[int]:
        """Replace the records of ascending numbers by none in a write; return their pages.

        Call it before `add`, which writes the last page.

        Raises:
            ValueError: a page isn't as it was written.
        """
        if numbers and self.all_kept:
            self.all_kept = False
            batch.put(GONE, b"")
        last = self.inserted >> _BITS
        for number in numbers:
            self.recent.forget(number)
            if number >> _BITS == last:
                self._open[number % DOCUMENTS_A_PAGE] = b""
        gone: dict[int, list[int]] = {}
        for number in numbers:
            gone.setdefault(number >> _BITS, []).append(number % DOCUMENTS_A_PAGE)
        for page in gone:
            self._newest.forget(page)
        stored = [page for page in gone if page != last]
        for page, packed in zip(stored, self._get(_keys(stored)), strict=True):
            records = unpack_page(packed or b"")
            for place in gone[page]:
                records[place] = b""
            batch.put(number_key(RECORDS, page), _packed(records))
        return set(gone)

    @staticmethod
    def drop(batch: WriteBatch, first: int) -> None:
        """Drop the pages that have no record from ``first`` on in a write."""
        gone = Range(RECORDS.low, number_key(RECORDS, first >> _BITS))
        batch.delete_range(*gone)

    def read(self, numbers: Sequence[int]) -> list[bytes | None]:
        """Return the records of ascending, different numbers; None where there is none.

        Raises:
            ValueError: a page isn't as it was written.
        """
        wanted: dict[int, list[int]] = {}
        for number in numbers:
            wanted.setdefault(number >> _BITS, []).append(number % DOCUMENTS_A_PAGE)
        packed = {page: self._newest.get(page) for page in wanted}
        missing = [page for page, known in packed.items() if known is None]
        packed.update(zip(missing, self._get(_keys(missing)), strict=True))
        found: list[bytes | None] = []
        for number, places in wanted.items():
            page = packed[number]
            found += [None] * len(places) if page is None else _some(page, places)
        return found

    def recorded(self, numbers: npt.NDArray[np.int64], slots: int) -> Records:
        """Return the records of ascending, different numbers in arrays.

        Raises:
            ValueError: a page isn't as it was written.
        """
        here, known = self.recent.get(numbers)
        if known is not None and here.all():
            return known
        others = np.flatnonzero(~here)
        read = Records.unpacked(self.read(numbers[others].tolist()), slots)
        self.recent.put(numbers[others], read)
        if known is None:
            return read
        both = Records.blank(len(numbers), slots, known.new.shape[1])
        return both.put(here, known).put(others, read)
