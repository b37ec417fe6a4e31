"""What fingerprint has read, kept for route of the same worker."""

import threading
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.bus import RecordBatch, TopicPartition
from worker.stages.budget import batch_cost
from worker.stages.document_cache import DocumentCache, Taken

MOST = 1 << 20


class Clock:
    """Stands still."""

    def __init__(self) -> None:
        """Start at zero."""
        self.now = 0.0

    def __call__(self) -> float:
        """Return the seconds that were set."""
        return self.now


def batch(*offsets: int, size: int = 1) -> RecordBatch:
    """Return documents at these offsets of partition 0."""
    stamps = np.zeros(len(offsets), np.int64)
    values: list[bytes | None] = [b"%d" % offset * size for offset in offsets]
    keys: list[bytes | None] = [None] * len(offsets)
    return RecordBatch(
        TopicPartition("documents", 0), np.array(offsets, np.int64), stamps, keys, values
    )


def shared(at: int = 0, *, most: int = MOST, clock: Clock | None = None) -> DocumentCache:
    """Return a cache of which both stages have partition 0, and keep what comes."""
    cache = DocumentCache(most, threading.Condition(), clock or Clock())
    cache.read_from({0: at})
    cache.publish_from({0: at})
    assert cache.take(0, at, at) == ([], at)
    return cache


def offsets(taken: Taken | None) -> list[int] | None:
    """Return the offsets of what was taken."""
    return None if taken is None else [record.offset for one in taken.batches for record in one]


def test_what_was_read_is_taken_once() -> None:
    cache = shared()
    cache.read(0, 3, batch(0, 2))
    assert offsets(cache.take(0, 0, 3)) == [0, 2]
    assert cache.take(0, 3, 3) == ([], 3)
    assert cache.cost == 0


def test_a_part_of_what_was_read_is_taken() -> None:
    cache = shared()
    cache.read(0, 4, batch(0, 1, 2, 3))
    assert offsets(cache.take(0, 0, 2)) == [0, 1]
    assert cache.cost == batch_cost(batch(2, 3))
    assert offsets(cache.take(0, 3, 9)) == [3]


def test_markers_are_passed_with_what_is_before_them() -> None:
    cache = shared()
    cache.read(0, 2, batch(0))
    cache.read(0, 5)
    taken = cache.take(0, 0, 9)
    assert taken is not None
    assert taken.reached == 5


def test_nothing_is_here_of_a_partition_that_another_worker_reads() -> None:
    cache = DocumentCache(MOST)
    cache.publish_from({0: 0})
    assert cache.take(0, 0, 1) is None
    cache.read_from({1: 0})
    assert cache.take(0, 0, 1) is None


def test_nothing_is_kept_of_a_partition_that_another_worker_publishes() -> None:
    cache = DocumentCache(MOST)
    cache.read_from({0: 0})
    cache.read(0, 1, batch(0))
    assert cache.cost == 0


def test_what_was_read_before_it_was_kept_is_not_here() -> None:
    cache = DocumentCache(MOST)
    cache.read_from({0: 5})
    cache.publish_from({0: 3})
    assert cache.take(0, 3, 5) is None
    cache.read(0, 6, batch(5))
    assert cache.take(0, 4, 6) is None
    assert offsets(cache.take(0, 5, 6)) == [5]


def test_nothing_is_kept_for_a_route_that_is_far_behind() -> None:
    cache = DocumentCache(MOST)
    cache.read_from({0: 1_000_000})
    cache.publish_from({0: 0})
    assert cache.take(0, 0, 9) is None
    cache.read(0, 1_000_001, batch(1_000_000))
    assert cache.cost == 0


def test_what_is_read_again_is_taken_again() -> None:
    cache = shared()
    cache.read(0, 2, batch(0, 1))
    cache.read_from({0: 0})  # The transaction was rolled back.
    assert cache.cost == 0
    assert cache.take(0, 0, 0) == ([], 0)
    cache.read(0, 3, batch(0, 1, 2))
    assert offsets(cache.take(0, 0, 3)) == [0, 1, 2]


def test_route_may_be_ahead_of_what_is_read_again() -> None:
    cache = shared()
    cache.read(0, 2, batch(0, 1))
    assert offsets(cache.take(0, 0, 2)) == [0, 1]
    cache.read_from({0: 0})
    assert cache.take(0, 2, 2) == ([], 2)
    cache.read(0, 3, batch(0, 1, 2))
    assert offsets(cache.take(0, 2, 3)) == [2]


@pytest.mark.parametrize("moves", ["read_from", "publish_from"])
def test_what_a_partition_had_goes_when_it_moves(moves: str) -> None:
    cache = shared()
    cache.read(0, 1, batch(0))
    getattr(cache, moves)({})
    assert cache.cost == 0
    assert cache.take(0, 0, 1) is None


def test_there_is_no_room_while_the_budget_is_spent() -> None:
    cache = shared(most=2_000)
    assert cache.has_room(0)
    cache.read(0, 1, batch(0, size=2_000))
    assert not cache.has_room(0)
    cache.take(0, 0, 1)
    assert cache.has_room(0)


def test_what_waits_in_route_is_a_part_of_the_budget() -> None:
    cache = shared(most=2_000)
    cache.wait_beside(1_900)
    assert cache.has_room(0)
    cache.read(0, 1, batch(0))
    assert not cache.has_room(0)
    cache.wait_beside(0)
    assert cache.has_room(0)


def test_everything_is_dropped_if_nothing_is_taken_for_long() -> None:
    clock = Clock()
    cache = shared(most=2_000, clock=clock)
    cache.read(0, 1, batch(0, size=2_000))
    clock.now = 1.9
    assert not cache.has_room(0)
    clock.now = 2.1
    assert cache.has_room(0)
    assert cache.cost == 0
    assert cache.take(0, 0, 1) is None, "it is gone"
    assert cache.take(0, 1, 1) == ([], 1), "what comes is kept"


def test_a_wait_ends_as_soon_as_there_is_room() -> None:
    cache = shared(most=2_000)
    cache.read(0, 1, batch(0, size=2_000))
    had_room: list[bool] = []
    waits = threading.Thread(target=lambda: had_room.append(cache.has_room(60)))
    waits.start()
    cache.take(0, 0, 1)
    waits.join(30)
    assert had_room == [True]


class Both:
    """Both stages on one partition; route reads from the log what the cache doesn't have."""

    def __init__(self, log: list[bool]) -> None:
        """Begin at the start of a log of documents (True) and markers."""
        self.clock = Clock()
        self.cache = DocumentCache(3_000, clock=self.clock)
        self.documents = [offset for offset, there in enumerate(log) if there]
        self.end = len(log)
        self.position = self.committed = self.reached = 0
        self.got: list[int] = []
        self.cache.read_from({0: 0})
        self.cache.publish_from({0: 0})

    def _between(self, low: int, high: int) -> list[int]:
        return [offset for offset in self.documents if low <= offset < high]

    def read(self, many: int) -> None:
        """Read some offsets, if there is room."""
        low, high = self.position, min(self.end, self.position + many)
        if low < high and self.cache.has_room(0):
            read = self._between(low, high)
            self.cache.read(0, high, batch(*read, size=50) if read else None)
            self.position = high

    def commit(self, _many: int) -> None:
        """Commit what was read: there are answers for it."""
        self.committed = self.position

    def abort(self, _many: int) -> None:
        """Read again what is not committed."""
        self.position = self.committed
        self.cache.read_from({0: self.position})

    def take(self, many: int) -> None:
        """Take some offsets that have answers."""
        high = min(self.committed, self.reached + many)
        if self.reached < high:
            taken = self.cache.take(0, self.reached, high)
            own = taken is None
            self.got += self._between(self.reached, high) if own else offsets(taken) or []
            self.reached = high if taken is None else taken.reached

    def move(self, _many: int) -> None:
        """Have route begin again where it is."""
        self.cache.publish_from({0: self.reached})

    def wait(self, _many: int) -> None:
        """Let time pass."""
        self.clock.now += 3


ACTS = st.sampled_from((Both.read, Both.commit, Both.abort, Both.take, Both.move, Both.wait))


@given(
    st.lists(st.booleans(), min_size=1, max_size=40),
    st.lists(st.tuples(ACTS, st.integers(1, 20)), max_size=40),
)
def test_route_gets_every_document_once_and_in_order(
    log: list[bool], acts: list[tuple[Callable[[Both, int], None], int]]
) -> None:
    """Whatever is rolled back, dropped, moved away and read from the log instead."""
    both = Both(log)
    for act, many in acts:
        act(both, many)
    while both.reached < both.end:
        for act in (Both.read, Both.commit, Both.take, Both.wait):
            act(both, 7)
    assert both.got == both.documents
