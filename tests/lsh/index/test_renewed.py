"""Times of renewed entries are those of a plain dictionary, and stored ones are read once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from lsh.index.clock import Clock
from lsh.index.layout import Renewals
from lsh.index.renewed import RenewedEntries, RenewedTimes

END = 6
"""Documents from here on are those of the batch, of which nothing is stored."""
TIMES = st.integers(0, 9)
CLOCK = Clock(now=0)
ENTRIES = st.lists(st.tuples(st.integers(0, END + 3), st.integers(0, 255), TIMES), max_size=12)
STORED = st.dictionaries(
    st.integers(0, END - 1), st.dictionaries(st.integers(0, 255), TIMES, min_size=1)
)


def arrays_of(
    entries: list[tuple[int, int, int]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    numbers, columns, times = np.array(entries, np.int64).reshape(-1, 3).T
    return numbers, columns.astype(np.uint8), times


@given(STORED, st.lists(st.tuples(st.booleans(), ENTRIES), max_size=6))
def test_the_latest_time_of_each_entry_stays(
    stored: dict[int, Renewals], steps: list[tuple[bool, list[tuple[int, int, int]]]]
) -> None:
    known = {number: dict(columns) for number, columns in stored.items()}
    asked: list[int] = []

    def read(numbers: Sequence[int]) -> dict[int, Renewals]:
        asked.extend(numbers)
        return {number: stored[number] for number in numbers if number in stored}

    renewed, met = RenewedTimes(read, END, CLOCK), set[int]()
    for puts, entries in steps:
        met.update(number for number, _, _ in entries)
        if puts:
            renewed.put(*arrays_of(entries))
            for number, column, time in entries:
                columns = known.setdefault(number, {})
                columns[column] = max(time, columns.get(column, time))
        else:
            latest = renewed.latest(*arrays_of(entries)).tolist()
            assert latest == [
                max(time, known.get(number, {}).get(column, time))
                for number, column, time in entries
            ]
    assert sorted(asked) == sorted(number for number in met if number < END)
    numbers = sorted(met)
    assert renewed.of(np.array(numbers, np.int64)) == [known.get(n, {}) for n in numbers]


def test_entries_of_several_rounds_are_joined() -> None:
    one = RenewedEntries(np.array([3, 4]), np.array([0, 1]), np.array([5, 6], np.uint8))
    both = RenewedEntries.joined([one, one.take(np.array([False, True]))])
    assert [part.tolist() for part in both] == [[3, 4, 4], [0, 1, 1], [5, 6, 6]]
    assert RenewedEntries.joined([]).columns.dtype == np.uint8
