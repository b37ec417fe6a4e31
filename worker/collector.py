"""How often Python looks for cycles of garbage, and how often its threads take turns."""

from __future__ import annotations

import gc
import sys
from threading import Event

from worker.heap import give_back

__all__ = ["collect_until", "relax"]

_YOUNG = 50_000
_MIDDLE = 20
_OLD = 50
_TURN_SECONDS = 0.02
_COLLECT_SECONDS = 60.0


def relax() -> None:
    """Look for cycles seldom, and let a thread that computes do so for longer.

    A batch makes tens of thousands of objects, and no cycles. By default each 700 of them would
    cause a look, and those that wait for answers would be looked through again and again. What
    there is by now stays, and is left out.

    Stages take batches: to change between them every 5 ms, as Python does by default, costs
    caches and brings nothing sooner.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    sys.setswitchinterval(_TURN_SECONDS)


def collect_until(over: Event, seconds: float = _COLLECT_SECONDS) -> None:
    """Look for all cycles at intervals, and give free memory back to the system.

    An exception that has come to lie in one may hold a client, with its threads and connections,
    and a worker makes so few objects that last that `relax` would leave it there for hours. A
    look takes some ms. It wants a thread of its own: a client that goes waits for its threads.
    """
    while not over.wait(seconds):
        gc.collect()
        give_back()
