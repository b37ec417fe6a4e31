"""When Python collects garbage cycles, and how often it switches threads."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from worker.process.malloc import give_back

__all__ = ["collect_until", "collecting", "relax"]

_YOUNG = 50_000
_MIDDLE = 20
_OLD = 50
_TURN_SECONDS = 0.02
_COLLECT_SECONDS = 60.0


def relax() -> None:
    """Collect garbage cycles less often, and switch threads less often.

    A batch creates tens of thousands of objects, but no cycles. By default every 700 of them
    would start a collection, and objects that wait for answers would be scanned many times.
    Objects that exist now are exempt from later collections.

    Stages work in batches: switching between threads every 5 ms, Python's default, costs cache
    misses and gains no latency.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    sys.setswitchinterval(_TURN_SECONDS)


def collect_until(over: Event, seconds: float = _COLLECT_SECONDS) -> None:
    """Collect all cycles every ``seconds`` until ``over``, and return free memory to the system.

    An exception in a cycle may hold a client with its threads and connections. A worker creates
    so few lasting objects that, after `relax`, such a cycle could stay for hours. A collection
    takes some ms. Run this in its own thread: destroying a client waits for its threads.
    """
    while not over.wait(seconds):
        gc.collect()
        give_back()


@contextmanager
def collecting(seconds: float = _COLLECT_SECONDS) -> Iterator[None]:
    """Do what `collect_until` does in a thread of its own, until the context is left."""
    over = Event()
    Thread(target=collect_until, args=(over, seconds), name="collector", daemon=True).start()
    try:
        yield
    finally:
        over.set()
