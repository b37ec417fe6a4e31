"""The records that were read lately, and the pages that were written lately.

Documents that many others are compared with are read again and again: those of crowded buckets, and
the originals of a wave of copies. They lie scattered over many pages. Most copies come soon after
their originals, whose pages are the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
import numpy.typing as npt

from lsh.index.records import Records
from worker.index.linear_hashing import half_of, places_of

__all__ = ["RecentPages", "RecentRecords"]

_MOST_BYTES = 8 << 20
_OVERHEAD = 96
"""About what a record takes beside its sketch, with an id of usual length."""
_LONGEST_ID = 64
"""Records with longer ids aren't kept: ids may have a kilobyte."""
_NOBODY = -1
_AT_ONCE = 1 << 15
"""How many records the arrays grow or shrink by at a time, so that no write takes long."""


class RecentRecords:
    """Records by number in arrays, in about ``most_bytes``.

    A record has one place, by its number; what was there before goes. If that was asked for since
    the last time that something new came to its place, the new one goes instead: else each document
    of a crowded bucket would have to be read again whenever so many others have come.

    The arrays grow with what is put into them, by a part at a time (see `linear_hashing`): to move
    200 MB at once takes half a second.

    Threads may read and add at the same time. None may read while something is forgotten.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        """Begin empty."""
        self._most = most_bytes
        self._lock = Lock()
        self._numbers = np.empty(0, np.int64)
        self._asked = np.empty(0, np.bool_)
        self._records = Records.blank(0, 0)
        self._used = 0

    @property
    def size_bytes(self) -> int:
        """Return about how much memory they take."""
        slots: int = self._records.sketches.shape[1]
        return self._used * (slots + _OVERHEAD)

    def get(self, numbers: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.bool_], Records | None]:
        """Return which of n records are here, bool[n], and these; None if none is."""
        with self._lock:
            if not len(self._numbers):
                return np.zeros(len(numbers), np.bool_), None
            places = places_of(numbers, len(self._numbers))
            here = self._numbers.take(places) == numbers
            if not here.any():
                return here, None
            found = places[here]
            self._asked[found] = True
            return here, self._records.take(found)

    def put(self, numbers: npt.NDArray[np.int64], records: Records) -> None:
        """Add records of different documents that were read."""
        self._add(numbers, records, asked=True)

    def put_new(self, first: int, packed: Sequence[bytes]) -> None:
        """Add records that were written, with numbers from ``first`` on.

        Only if some were read before: else nobody has asked for any yet.
        """
        slots: int = self._records.sketches.shape[1]
        if packed and slots:
            records = Records.unpacked(packed, slots)
            self._add(np.arange(first, first + len(packed)), records, asked=False)

    def _add(self, numbers: npt.NDArray[np.int64], records: Records, *, asked: bool) -> None:
        short = [len(ident) <= _LONGEST_ID for ident in records.ids.tolist()]
        kept = np.flatnonzero(records.kept & np.array(short, np.bool_))
        if not len(kept):
            return
        if len(kept) < len(numbers):
            numbers, records = numbers[kept], records.take(kept)
        with self._lock:
            self._make_room(records)
            if not asked:
                left = np.flatnonzero(self._give_way(numbers))
                if len(left) < len(numbers):
                    numbers, records = numbers[left], records.take(left)
            self._put(numbers, records, asked=asked)

    def _give_way(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which new records may take their places, bool[n]; others may take them next time.

        Two that are new may have the same place, so all are asked before any is changed.
        """
        places = places_of(numbers, len(self._numbers))
        free: npt.NDArray[np.bool_] = ~self._asked[places] | (self._numbers[places] == numbers)
        self._asked[places] = False
        return free

    def _put(self, numbers: npt.NDArray[np.int64], records: Records, *, asked: bool) -> None:
        places = places_of(numbers, len(self._numbers))
        chosen = _last_of_each(places)
        if len(chosen) < len(places):
            places, numbers, records = places[chosen], numbers[chosen], records.take(chosen)
        self._used += int(np.count_nonzero(self._numbers[places] == _NOBODY))
        self._records = self._records.put(places, records)
        self._numbers[places], self._asked[places] = numbers, asked

    def _make_room(self, more: Records) -> None:
        """Have the arrays grow for more records, as long as they may."""
        count, added = len(self._numbers), len(more.exist)
        most = self._most_records(more.sketches.shape[1])
        wanted = min(most, 2 * (self._used + added))
        if wanted > count:
            self._grow(min(most, 2 * wanted, count + max(_AT_ONCE, 4 * added)), more)

    def _grow(self, count: int, like: Records) -> None:
        """Add places, and move what belongs there; ``like`` are records of the same shape."""
        if not len(self._numbers):
            self._records = Records.blank(0, like.sketches.shape[1], like.new.shape[1])
            self._resize(count)
        while (first := len(self._numbers)) < count:
            half = half_of(first + 1)
            end = min(count, 2 * half)
            self._resize(end)
            former = np.arange(first, end) - half
            there = self._numbers[former]
            moved = (there != _NOBODY) & (there & half != 0)
            self._move(former[moved], former[moved] + half)

    def _shrink(self, count: int) -> None:
        """Remove the last places. What is there moves where it belongs, if nothing is there."""
        while (end := len(self._numbers)) > count:
            half = half_of(end)
            first = max(count, half)
            last = np.arange(first, end)
            there = self._numbers[last] != _NOBODY
            moved = there & (self._numbers[last - half] == _NOBODY)
            self._used -= int(np.count_nonzero(there & ~moved))
            self._move(last[moved], last[moved] - half)
            self._resize(first)

    def _move(self, places: npt.NDArray[np.int64], into: npt.NDArray[np.int64]) -> None:
        self._records = self._records.put(into, self._records.take(places))
        self._numbers[into], self._asked[into] = self._numbers[places], self._asked[places]
        self._clear(places)

    def _clear(self, places: npt.NDArray[np.int64]) -> None:
        """Have nothing in some places: nothing may be left there of what is forgotten later."""
        slots, bits = self._records.sketches.shape[1], self._records.new.shape[1]
        self._records = self._records.put(places, Records.blank(len(places), slots, bits))
        self._numbers[places], self._asked[places] = _NOBODY, False

    def _resize(self, count: int) -> None:
        """Have the arrays so long, in place, where malloc can; what is new is empty."""
        former = len(self._numbers)
        self._records.ids[count:] = b""  # What is cut off is not released.
        for part in (self._numbers, self._asked, *self._records):
            part.resize((count, *part.shape[1:]), refcheck=False)
        self._numbers[former:] = _NOBODY
        self._records.ids[former:] = b""

    def _most_records(self, slots: int) -> int:
        return max(1, self._most // (slots + _OVERHEAD))

    def limit(self, most_bytes: int) -> None:
        """Take about so much memory from now on.

        Records go if it is less than before, a part with each call.
        """
        with self._lock:
            self._most = most_bytes
            count, most = len(self._numbers), self._most_records(self._records.sketches.shape[1])
            if count > most + min(most // 4, _AT_ONCE):
                self._shrink(max(most, count - _AT_ONCE))

    def forget(self, number: int) -> None:
        """Drop a record, if it is here."""
        if not len(self._numbers):
            return
        places = places_of(np.array([number]), len(self._numbers))
        if self._numbers[places] == number:
            self._used -= 1
            self._clear(places)


def _last_of_each(places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return where each of n places comes last: of several with one place, that one stays."""
    last: npt.NDArray[np.int64] = np.unique(places[::-1], return_index=True)[1]
    return len(places) - 1 - last


class RecentPages:
    """The newest pages by number, at most ``most_bytes`` of them.

    Threads may read at the same time, but not while a page is added or forgotten.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        """Begin empty."""
        self._most = most_bytes
        self._pages: dict[int, bytes] = {}
        self.size_bytes = 0

    def get(self, number: int) -> bytes | None:
        """Return a page; None if it isn't here."""
        return self._pages.get(number)

    def put(self, number: int, page: bytes) -> None:
        """Add a page that was written, or replace it; the oldest ones go."""
        self.forget(number)
        self._pages[number] = page
        self.size_bytes += len(page)
        while self.size_bytes > self._most:
            self.forget(next(iter(self._pages)))

    def forget(self, number: int) -> None:
        """Drop a page, if it is here."""
        self.size_bytes -= len(self._pages.pop(number, b""))
