"""Queries read a shard together, and nobody reads while something is written."""

from __future__ import annotations

import threading
from collections.abc import Callable

from worker.queries.shard_lock import ShardLock

DEADLINE = 20.0
A_WHILE = 0.1


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


def test_several_read_at_once() -> None:
    shard, all_read = ShardLock(), threading.Barrier(3)

    def read() -> None:
        with shard.reading():
            all_read.wait(DEADLINE)

    readers = [Doing(read) for _ in range(3)]
    assert all(reader.ends() for reader in readers)


def test_nobody_reads_while_something_is_written_and_the_writer_is_not_kept_waiting() -> None:
    shard, leave = ShardLock(), threading.Event()
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
