"""Cycles of garbage don't wait for as many objects as a worker makes in hours."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from threading import Event, Thread
from weakref import ref

import pytest

from localkafka.broker import wait_until
from worker.process.heap import collect_until, collecting, relax


class Node:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def relaxed() -> Iterator[None]:
    thresholds, turn = gc.get_threshold(), sys.getswitchinterval()
    relax()
    yield
    sys.setswitchinterval(turn)
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@pytest.mark.usefixtures("relaxed")
def test_a_cycle_is_found_while_nothing_else_is_made() -> None:
    known, over = ref(Node()), Event()
    assert known() is not None
    collector = Thread(target=collect_until, args=(over, 0.01))
    collector.start()
    try:
        wait_until(lambda: known() is None, 30, "the cycle's end")
    finally:
        over.set()
        collector.join()


@pytest.mark.usefixtures("relaxed")
def test_cycles_are_found_as_long_as_a_context_lasts() -> None:
    with collecting(0.01):
        known = ref(Node())
        wait_until(lambda: known() is None, 30, "the cycle's end")
        (collector,) = (one for one in threading.enumerate() if one.name == "collector")
    collector.join(30)
    assert not collector.is_alive()
