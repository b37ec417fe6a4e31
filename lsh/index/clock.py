"""The index's time: as of when a document counts, and since when entries are too old.

Now is the 16th latest of the last 64 documents' times, in their order, and never goes back. Until
32 have come there is no now, and nothing expires; those documents count as of the first now. A
document counts as of now, or at its own time if that is later by at most one window. One without a
time counts as of now, too, and has no vote. An entry lives while its time is at most a window
before now. The numbers are `BucketRules.now_rank`, `now_of` and `now_least`.

So no single date decides anything, copies of documents that are all old meet, and whatever follows
is a function of the documents in their order, wherever batches are cut.

Until there is a now, nobody knows as of when a document counts, and an entry may stand for several
of them. So an entry has a *mark* meanwhile: which of the first times are those of its documents, as
bits. It stays in storage, and is read as a time as soon as there is a now; see `Clock.settled`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.rules import BucketRules

__all__ = ["NO_TIME", "Clock", "Dated", "Leap", "dated"]

NO_TIME: Final = int(np.iinfo(np.int64).min)
"""The time of a document that has none. It is also the mark of an entry of such documents."""

_MARKS_END = NO_TIME + (1 << 62)
"""Marks are below, and times aren't."""
_HEAD = struct.Struct("<qB")


class Leap(NamedTuple):
    """Now went forward by more than a window at one document: from ``before`` to ``after``, ms."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Clock:
    """What the documents so far say about the time.

    now: in ms; None: there is none yet.
    recent: the times of the last documents that have one, in ms: one fewer than have a vote.
    opening: the first now, and as of when each of the documents counts that had a vote before it;
        empty until there is a now.
    """

    now: int | None = None
    recent: tuple[int, ...] = ()
    opening: tuple[int, ...] = ()

    @property
    def later(self) -> np.ufunc:
        """Return what makes one time of those of two documents that an entry stands for."""
        return np.bitwise_or if self.now is None else np.maximum

    def settled(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the times of stored entries: int64[e]. Until there is a now, marks stay marks."""
        marks = times < _MARKS_END
        if self.now is None or not marks.any():
            return times
        found = times.copy()
        for mark in set(times[marks].tolist()):
            bits = mark - NO_TIME
            first, *others = self.opening
            its = [other for place, other in enumerate(others) if bits >> place & 1]
            found[times == mark] = max([first, *its])
        return found

    def oldest_alone(self, times: NDArray[np.int64], rules: BucketRules) -> NDArray[np.int64]:
        """Return the least time of an entry if each of n documents came next: int64[n].

        times: int64[n], ms, or `NO_TIME`.
        """
        if self.now is None or rules.window_ms is None:  # Nothing is older than the first now.
            return np.full(len(times), NO_TIME)
        ranked, place = sorted(self.recent, reverse=True), rules.now_rank - 1
        least = ranked[place] if place < len(ranked) else NO_TIME
        voted = np.maximum(times, least)
        if place:
            voted = np.minimum(voted, ranked[place - 1])
        nows = np.where(times == NO_TIME, self.now, np.maximum(voted, self.now))
        return nows - rules.window_ms

    def packed(self) -> bytes:
        """Return the clock's bytes: now, how many times ``opening`` has, these, and ``recent``."""
        now = NO_TIME if self.now is None else self.now
        times = np.array([*self.opening, *self.recent], "<i8")
        return _HEAD.pack(now, len(self.opening)) + times.tobytes()

    @classmethod
    def unpacked(cls, packed: bytes) -> Clock:
        """Return the clock of these bytes.

        Raises ValueError if `packed` hasn't made them.
        """
        try:
            now, count = _HEAD.unpack_from(packed)
            times = np.frombuffer(packed, "<i8", offset=_HEAD.size).tolist()
        except (struct.error, ValueError) as error:
            message = f"{len(packed)} bytes are not a clock"
            raise ValueError(message) from error
        if count > len(times) or (now == NO_TIME) == (count > 0):
            message = f"a clock can't have {count} of {len(times)} times"
            raise ValueError(message)
        return cls(None if now == NO_TIME else now, tuple(times[count:]), tuple(times[:count]))


@dataclass(frozen=True, slots=True)
class Dated:
    """The times of n documents.

    times: int64[n], as of when each counts, in ms; marks if there is no now after all of them.
    oldest: int64[n], the least time of an entry when each comes; None: any.
    clock: the one after them.
    latest: the latest of ``times``, and of those that are known only now; `NO_TIME` if none is.
    older: how many came more than a window older than now.
    leap: the last one, if there is any.
    """

    times: NDArray[np.int64]
    oldest: NDArray[np.int64] | None
    clock: Clock
    latest: int = NO_TIME
    older: int = 0
    leap: Leap | None = None

    @classmethod
    def nothing(cls, clock: Clock | None = None) -> Dated:
        """Return the times of no documents."""
        return cls(np.empty(0, np.int64), None, clock or Clock())

    def of(self, rows: NDArray[np.int64]) -> Dated:
        """Return those of some documents, with all else of all: int64[k], their rows."""
        oldest = None if self.oldest is None else self.oldest[rows]
        return replace(self, times=self.times[rows], oldest=oldest)


def dated(clock: Clock, times: NDArray[np.int64], rules: BucketRules) -> Dated:
    """Return as of when each of n documents counts.

    times: int64[n], their own, in ms, or `NO_TIME`.
    """
    if not len(times):
        return Dated.nothing(clock)
    voting = np.flatnonzero(times != NO_TIME)
    before = len(clock.recent)
    voted = np.concatenate((np.array(clock.recent, np.int64), times.take(voting)))
    nows = np.full(len(times), NO_TIME)
    nows[voting] = _ranked(voted, before, rules)
    if clock.now is not None:
        nows[0] = max(int(nows[0]), clock.now)
    np.maximum.accumulate(nows, out=nows)
    recent = tuple(voted[max(0, len(voted) - rules.now_of + 1) :].tolist())
    without = 0 if clock.now is not None else int(np.count_nonzero(nows == NO_TIME))
    if without == len(times):
        marks = np.full(len(times), NO_TIME)
        marks[voting] += np.int64(1) << np.arange(before, before + len(voting))
        oldest = None if rules.window_ms is None else nows
        return Dated(marks, oldest, Clock(None, recent))
    opening, first = clock.opening, int(nows[without])
    if without or clock.now is None:
        opening = (first, *_counting(voted[: rules.now_least - 1], first, rules).tolist())
    after = Clock(int(nows[-1]), recent, opening)
    counting = _counting(times, np.maximum(nows, first), rules)
    latest = int(counting.max())
    if clock.now is None:
        latest = max(latest, *opening)
    if rules.window_ms is None:
        return Dated(counting, None, after, latest)
    oldest = np.full(len(times), NO_TIME)
    oldest[without:] = nows[without:] - rules.window_ms
    older = int(np.count_nonzero((times < oldest) & (times != NO_TIME)))
    leap = _leap(first if clock.now is None else clock.now, nows[without:], rules.window_ms)
    return Dated(counting, oldest, after, latest, older, leap)


def _ranked(voted: NDArray[np.int64], first: int, rules: BucketRules) -> NDArray[np.int64]:
    """Return the now that the votes up to each one give, from the place ``first`` on: int64[v].

    `NO_TIME` where there are too few.
    """
    rank, last = rules.now_rank, rules.now_of
    places = np.arange(first, len(voted))
    if (voted[1:] >= voted[:-1]).all():
        found = voted.take(places - rank + 1, mode="clip")
    else:
        nobody = np.full(last - 1, NO_TIME)
        windows = sliding_window_view(np.concatenate((nobody, voted)), last)[first:]
        found = np.partition(windows, last - rank, axis=1)[:, last - rank]
    return np.where(places + 1 >= rules.now_least, found, NO_TIME)


def _counting(
    times: NDArray[np.int64], nows: NDArray[np.int64] | int, rules: BucketRules
) -> NDArray[np.int64]:
    """Return as of when documents count: int64[n]. times, nows: int64[n], at each, in ms."""
    own = times > nows
    if rules.window_ms is not None:
        own &= times <= nows + rules.window_ms
    return np.where(own, times, nows)


def _leap(before: int, nows: NDArray[np.int64], window: int) -> Leap | None:
    """Return the last leap, if there is one. nows: int64[m], at each document, ascending."""
    if nows[-1] - before <= window:
        return None
    before_each = np.concatenate(([before], nows[:-1]))
    leaps = np.flatnonzero(nows - before_each > window)
    return Leap(int(before_each[leaps[-1]]), int(nows[leaps[-1]])) if len(leaps) else None
