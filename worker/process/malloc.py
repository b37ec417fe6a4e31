"""Return freed memory to the system.

glibc's malloc has up to eight heaps (arenas) per core for its threads. It returns only free
memory at the end of a heap, and of that only what exceeds twice the largest block ever freed. A
worker has a hundred threads of librdkafka and RocksDB, which start and stop with every
rebalance; without limits, each heap would keep its peak size.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

__all__ = ["give_back", "limit"]


class _Parameter(NamedTuple):
    """A parameter of malloc: its number in ``mallopt``, its environment variable, our value."""

    number: int
    variable: str
    value: int


_PARAMETERS = (
    _Parameter(-8, "MALLOC_ARENA_MAX", 4),
    _Parameter(-3, "MALLOC_MMAP_THRESHOLD_", 8 << 20),
    _Parameter(-1, "MALLOC_TRIM_THRESHOLD_", 4 << 20),
)
"""M_ARENA_MAX, M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of glibc's malloc.h, mallopt(3)."""


def limit() -> None:
    """Limit the heaps of malloc and the memory they keep; do nothing without glibc.

    Call it before threads start: existing heaps stay. Two heaps, or a threshold of 1 MB, would
    keep less memory, but cost a few per cent of CPU.
    """
    mallopt = _function("mallopt")
    for number, variable, value in _PARAMETERS:
        if mallopt is not None and variable not in os.environ:
            mallopt(number, value)


def give_back() -> None:
    """Return all free pages to the system; do nothing without glibc.

    Takes 7 ms for a heap of 60 MB with nothing to return, and 47 ms to return 240 MB.
    """
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)


@cache
def _function(name: str) -> Callable[..., Any] | None:
    try:
        found: Callable[..., Any] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return None
    return found
