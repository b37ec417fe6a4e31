"""Where a batch ends that nobody can read: found by trying."""

from __future__ import annotations

from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st

from worker.admin.bad_batch import Attempt, Outcome, end_of


class Log:
    """Batches of so many offsets; those in ``unreadable`` can't be read."""

    def __init__(self, sizes: list[int], unreadable: set[int]) -> None:
        self.starts = [sum(sizes[:number]) for number in range(len(sizes))]
        self.end = sum(sizes)
        self.unreadable = unreadable
        self.attempts = 0

    def __call__(self, offset: int) -> Attempt:
        self.attempts += 1
        assert 0 <= offset < self.end
        batch = bisect_right(self.starts, offset) - 1
        return Attempt(Outcome.UNPACKABLE if batch in self.unreadable else Outcome.READ)


@given(st.integers(0, 200), st.integers(1, 100_000), st.lists(st.integers(1, 500), max_size=5))
def test_the_end_of_one_batch_is_found_exactly(before: int, size: int, after: list[int]) -> None:
    sizes = [before, size, *after] if before else [size, *after]
    which = 1 if before else 0
    log = Log(sizes, {which})
    assert end_of(log, before, log.end) == before + size
    assert log.attempts <= 2 * size.bit_length() + 6


@given(st.integers(1, 1_000), st.integers(0, 999))
def test_a_search_may_begin_within_a_batch(size: int, within: int) -> None:
    log = Log([size, 10], {0})
    assert end_of(log, min(within, size - 1), log.end) == size


@given(st.lists(st.integers(1, 300), min_size=2, max_size=12), st.data())
def test_the_range_ends_where_a_batch_can_be_read(sizes: list[int], data: st.DataObject) -> None:
    unreadable = {0} | data.draw(st.sets(st.integers(0, len(sizes) - 1)))
    log = Log(sizes, unreadable)
    end = end_of(log, 0, log.end)
    assert end >= sizes[0]
    assert end == log.end or log(end).outcome is Outcome.READ
    assert end == log.end or log(end - 1).outcome is Outcome.UNPACKABLE
