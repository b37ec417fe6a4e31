"""Queries go first, and the thread that applies the log goes on all the same."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count

import pytest

from worker.queries import turns
from worker.queries.turns import Precedence, ShardLock

DEADLINE = 20.0
A_WHILE = 0.1


class Clock:
    """A clock that somebody sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Doing:
    """Does something in a thread of its own."""

    def __init__(self, what: Callable[[], object]) -> None:
        self.done = threading.Event()
        self._what = what
        self._thread = threading.Thread(target=self._do, daemon=True)
        self._thread.start()

    def _do(self) -> None:
        self._what()
        self.done.set()

    def ends(self) -> bool:
        self._thread.join(DEADLINE)
        return self.done.is_set()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_LONGEST_SECONDS", 5 * DEADLINE)


@pytest.mark.usefixtures("patient")
def test_the_thread_waits_until_the_last_query_is_answered() -> None:
    clock = Clock()
    precedence = Precedence(clock)
    with precedence.asking():
        with precedence.asking():
            clock.now = 5 * DEADLINE
            waiting = Doing(precedence.give_way)
            assert not waiting.done.wait(A_WHILE)
        assert not waiting.done.wait(A_WHILE)
    assert waiting.ends()


@pytest.mark.usefixtures("patient")
def test_a_query_that_fails_is_waited_for_no_more() -> None:
    clock = Clock()
    precedence = Precedence(clock)
    with pytest.raises(ValueError, match="refused"), precedence.asking():
        raise ValueError("refused")
    clock.now = 5 * DEADLINE
    assert Doing(precedence.give_way).ends()


@pytest.mark.usefixtures("patient")
def test_it_waits_in_proportion_to_what_it_has_done_since() -> None:
    clock = Clock()
    precedence = Precedence(clock)
    with precedence.asking():
        assert Doing(precedence.give_way).ends()
        clock.now = 5 * DEADLINE
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(turns, "_PATIENCE", 0)
            precedence.give_way()
        # What it had done before doesn't count again.
        assert Doing(precedence.give_way).ends()


@pytest.mark.usefixtures("patient")
def test_what_it_has_not_waited_is_left_for_later() -> None:
    clock = Clock()
    precedence = Precedence(clock)
    clock.now = 5 * DEADLINE
    precedence.give_way()  # Nobody asks.
    with precedence.asking():
        waiting = Doing(precedence.give_way)
        assert not waiting.done.wait(A_WHILE)
    assert waiting.ends()


@pytest.mark.usefixtures("patient")
def test_what_it_has_waited_is_left_no_more() -> None:
    times = iter([0.0, 5 * DEADLINE, 15 * DEADLINE, 15 * DEADLINE, 15 * DEADLINE])
    precedence = Precedence(times.__next__)
    asking = precedence.asking()
    with asking:
        waiting = Doing(precedence.give_way)
        assert not waiting.done.wait(A_WHILE)
    assert waiting.ends()
    with precedence.asking():
        assert Doing(precedence.give_way).ends()


def test_it_goes_on_after_a_while_whoever_asks() -> None:
    precedence = Precedence(count(0, 1_000).__next__)
    with precedence.asking():
        assert Doing(precedence.give_way).ends()


def test_it_pauses_now_and_then_if_nobody_asks() -> None:
    clock, pauses = Clock(), list[float]()
    precedence = Precedence(clock, pauses.append)
    for seconds, expected in ((0.0009, 0), (0.0011, 1), (0.0019, 1), (0.0022, 2)):
        clock.now = seconds
        precedence.give_way()
        assert len(pauses) == expected


def lock() -> ShardLock:
    return ShardLock(Precedence(Clock()))


def test_several_read_at_once() -> None:
    shard, all_read = lock(), threading.Barrier(3)

    def read() -> None:
        with shard.reading():
            all_read.wait(DEADLINE)

    readers = [Doing(read) for _ in range(3)]
    assert all(reader.ends() for reader in readers)


def test_nobody_reads_while_something_is_written_and_the_writer_is_not_kept_waiting() -> None:
    shard, leave = lock(), threading.Event()
    read, written, wrote = threading.Event(), threading.Event(), threading.Event()

    def reading() -> None:
        with shard.reading():
            read.set()
            leave.wait(DEADLINE)

    def writing() -> None:
        with shard:
            written.set()
            wrote.wait(DEADLINE)

    def reading_later() -> None:
        with shard.reading():
            pass

    first = Doing(reading)
    assert read.wait(DEADLINE)
    writer = Doing(writing)
    assert not written.wait(A_WHILE)
    later = Doing(reading_later)
    assert not later.done.wait(A_WHILE)  # It came after the writer.
    leave.set()
    assert first.ends()
    assert written.wait(DEADLINE)
    assert not later.done.wait(A_WHILE)
    wrote.set()
    assert writer.ends()
    assert later.ends()
