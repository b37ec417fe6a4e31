"""How often Python looks for cycles of garbage, and how often its threads take turns."""

from __future__ import annotations

import gc
import sys

__all__ = ["relax"]

_YOUNG = 50_000
_MIDDLE = 20
_OLD = 50
_TURN_SECONDS = 0.02


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
