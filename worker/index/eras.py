"""Eras: a store divides its documents by the time at which they were inserted.

With a window, the space of an era is given back at once, when all its entries are older than the
window. An entry that is renewed in a later era moves there: its document gets another number. An
entry may be later than now by up to a window, so an era notes its latest entry's time.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from operator import attrgetter

import msgspec
import numpy as np
import numpy.typing as npt

from lsh.index.clock import NO_TIME

__all__ = ["ERAS_A_WINDOW", "Era", "Eras"]

ERAS_A_WINDOW = 8
"""More give space back sooner, and move a document that is renewed all the time more often."""
_STEPS_A_WINDOW = 64


class Era(msgspec.Struct, frozen=True):
    """An era: its number, its first document, and what was now at its beginning, in ms.

    ``since`` is None until there is a now. No entry is later than ``latest``, in ms.
    """

    number: int
    first: int
    since: int | None = None
    latest: int = NO_TIME


@dataclass(slots=True)
class Eras:
    """The eras of a store that are kept, oldest first; the last is the current one."""

    kept: list[Era] = field(default_factory=lambda: [Era(0, 0)])

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

    def due(self, now: int | None, window: int | None) -> bool:
        """Return whether the current era has lasted long enough; times in ms."""
        since = self.current.since
        if now is None or since is None or window is None:
            return False
        return now - since >= window / ERAS_A_WINDOW

    def note(self, now: int | None, latest: int, window: int | None) -> bool:
        """Note what was inserted into the current era; return whether that changes anything.

        ``latest`` is the latest time of what was, ``now`` what is now after that; in ms. It is
        rounded up, so that eras seldom change.
        """
        era = self.current
        since = now if era.since is None else era.since
        if now is not None and window is not None:
            step = max(1, window // _STEPS_A_WINDOW)
            latest = max(era.latest, -(-latest // step) * step)
        else:
            latest = era.latest
        self.kept[-1] = Era(era.number, era.first, since, latest)
        return self.current != era

    def begin(self, first: int, now: int | None) -> None:
        """Begin an era; ``now`` in ms. An empty era begins anew."""
        if self.current.first == first:
            self.kept[-1] = Era(self.current.number, first, now)
        else:
            self.kept.append(Era(self.current.number + 1, first, now))

    def drop(self, now: int | None, window: int | None) -> int:
        """Drop the oldest eras, as far as all their entries are too old; return how many."""
        if now is None or window is None:
            return 0
        ended = enumerate(self.kept[:-1])
        dead = next((n for n, era in ended if era.latest >= now - window), len(self.kept) - 1)
        del self.kept[:dead]
        return dead
