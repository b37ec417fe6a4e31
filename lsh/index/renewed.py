"""Entries that stand for later documents are renewed: to which times, and in which buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.ordered import first_of_each, without_repeats

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from lsh.index.clock import Clock
    from lsh.index.layout import Renewals

__all__ = ["COLUMN_BITS", "RenewedEntries", "RenewedTimes", "by_document"]

COLUMN_BITS = 8


class RenewedEntries(NamedTuple):
    """Which m entries were renewed, some maybe several times.

    numbers: int64[m], of their documents. buckets: int64[m], where. columns: uint8[m], of these.
    """

    numbers: NDArray[np.int64]
    buckets: NDArray[np.int64]
    columns: NDArray[np.uint8]

    @classmethod
    def joined(cls, parts: Sequence[RenewedEntries]) -> RenewedEntries:
        """Return the entries of several."""
        none = cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8))
        return cls._make(map(np.concatenate, zip(none, *parts, strict=True)))

    def take(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> RenewedEntries:
        """Return some of them."""
        return RenewedEntries._make(part[which] for part in self)


class RenewedTimes:
    """The times to which entries were renewed, by document and column.

    What is stored is read when it is asked for.
    """

    def __init__(
        self, read: Callable[[Sequence[int]], Mapping[int, Renewals]], end: int, clock: Clock
    ) -> None:
        """Take what reads the renewals of documents; those from the number ``end`` on have none.

        clock: by which stored times are read.
        """
        self._read = read
        self._end = end
        self._clock = clock
        self._asked = np.empty(0, np.int64)
        # The number and column of each as one, ascending.
        self._keys, self._times = np.empty(0, np.int64), np.empty(0, np.int64)

    def latest(
        self, numbers: NDArray[np.int64], columns: NDArray[np.uint8], times: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the times of entries: their own, or those to which they were renewed.

        numbers: int64[e], of their documents. columns: uint8[e]. times: int64[e], their own, in ms.
        """
        self._learn(numbers)
        if not len(self._keys):
            return times
        own = _joined(numbers, columns)
        at = np.minimum(np.searchsorted(self._keys, own), len(self._keys) - 1)
        renewed = self._clock.later(self._times.take(at), times)
        return np.where(self._keys.take(at) == own, renewed, times)

    def put(
        self, numbers: NDArray[np.int64], columns: NDArray[np.uint8], times: NDArray[np.int64]
    ) -> None:
        """Renew entries: int64[e], uint8[e], int64[e], ms; see `Clock.later`."""
        self._learn(numbers)
        self._add(_joined(numbers, columns), times)

    def of(self, numbers: NDArray[np.int64]) -> list[Renewals]:
        """Return the renewals of each of k documents that are known here, ascending: int64[k]."""
        firsts = np.searchsorted(self._keys, numbers << COLUMN_BITS)
        ends = np.searchsorted(self._keys, (numbers + 1) << COLUMN_BITS)
        columns = self._keys & ((1 << COLUMN_BITS) - 1)
        return by_document(columns, self._times, firsts, ends)

    def _learn(self, numbers: NDArray[np.int64]) -> None:
        """Read the renewals of documents of which they weren't read yet."""
        stored = without_repeats(numbers[numbers < self._end])
        new = stored[~np.isin(stored, self._asked, assume_unique=True)]
        if not len(new):
            return
        self._asked = np.concatenate((self._asked, new))
        pairs = [
            (number << COLUMN_BITS | column, time)
            for number, columns in self._read(new.tolist()).items()
            for column, time in columns.items()
        ]
        if pairs:
            keys, times = np.array(pairs, np.int64).T
            self._add(keys, self._clock.settled(times))

    def _add(self, keys: NDArray[np.int64], times: NDArray[np.int64]) -> None:
        keys, times = np.concatenate((self._keys, keys)), np.concatenate((self._times, times))
        order = np.argsort(keys, kind="stable")
        keys, times = keys.take(order), times.take(order)
        firsts = np.flatnonzero(first_of_each(keys))
        self._keys, self._times = keys[firsts], self._clock.later.reduceat(times, firsts)


def by_document(
    columns: NDArray[np.integer],
    times: NDArray[np.int64],
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> list[Renewals]:
    """Return the renewals of k documents, whose columns and times are parts of arrays.

    firsts, ends: int64[k], where each one's part begins and ends.
    """
    every, each = columns.tolist(), times.tolist()
    return [
        dict(zip(every[first:end], each[first:end], strict=True))
        for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)
    ]


def _joined(numbers: NDArray[np.int64], columns: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return numbers and columns as one number each: int64[e]."""
    joined: NDArray[np.int64] = numbers << COLUMN_BITS | columns
    return joined
