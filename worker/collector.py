"""How often Python looks for cycles of garbage."""

from __future__ import annotations

import gc

__all__ = ["relax"]

_YOUNG = 50_000
_MIDDLE = 20
_OLD = 50


def relax() -> None:
    """Look for cycles seldom: a batch makes tens of thousands of objects, and no cycles.

    By default each 700 of them would cause a look, and those that wait for answers would
    be looked through again and again. What there is by now stays, and is left out.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
