"""Eras: a store divides its documents by the time at which they were inserted.

With a window, the space of an era is given back at once, when all its entries are older than the
window. An entry that is renewed in a later era moves there: its document gets another number. So an
entry's time is at most the time at which its era ended.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from operator import attrgetter

import msgspec
import numpy as np
import numpy.typing as npt

__all__ = ["ERAS_A_WINDOW", "Era", "Eras"]

ERAS_A_WINDOW = 8
"""More give space back sooner, and move a document that is renewed all the time more often."""


class Era(msgspec.Struct, frozen=True):
    """An era: its number, its first document, and the log's time at its beginning, in ms."""

    number: int
    first: int
    since: int


@dataclass(slots=True)
class Eras:
    """The eras of a store that are kept, oldest first; the last is the current one."""

    kept: list[Era] = field(default_factory=lambda: [Era(0, 0, 0)])

    @property
    def current(self) -> Era:
        """Return the era that new documents belong to."""
        return self.kept[-1]

    @property
    def first(self) -> int:
        """Return the number of the first document that is kept."""
        return self.kept[0].first

    def of(self, number: int) -> int:
        """Return the era of a document; of one that is not kept any more, the oldest era."""
        place = bisect_right(self.kept, number, key=attrgetter("first")) - 1
        return self.kept[max(0, place)].number

    def of_each(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the eras of documents, int64[n]; see `of`."""
        firsts = np.array([era.first for era in self.kept])
        eras = np.array([era.number for era in self.kept])
        found: npt.NDArray[np.int64] = eras[
            np.maximum(0, np.searchsorted(firsts, numbers, side="right") - 1)
        ]
        return found

    def overlapping(self, first: int, end: int) -> list[int]:
        """Return the eras of the documents ``first`` to before ``end``, newest first."""
        return list(range(self.of(end - 1), self.of(first) - 1, -1))

    def due(self, now: int, window: int | None) -> bool:
        """Return whether the current era has lasted long enough; times in ms."""
        return window is not None and now - self.current.since >= window / ERAS_A_WINDOW

    def begin(self, first: int, now: int) -> None:
        """Begin an era at the log's time ``now``, in ms. An empty era begins anew."""
        if self.current.first == first:
            self.kept[-1] = Era(self.current.number, first, now)
        else:
            self.kept.append(Era(self.current.number + 1, first, now))

    def drop(self, now: int, window: int | None) -> int:
        """Drop the eras whose entries are all older than the window; return how many."""
        if window is None:
            return 0
        ended = [era.since for era in self.kept[1:]]
        dead = bisect_right(ended, now - window - 1)
        del self.kept[:dead]
        return dead
