"""The memory of the process: how it is given back, how often garbage is collected, how much it is.

glibc's malloc has up to eight heaps (arenas) per core for its threads. It returns only free
memory at the end of a heap, and of that only what exceeds twice the largest block ever freed. A
worker has a hundred threads of librdkafka and RocksDB, which start and stop with every
rebalance; without limits, each heap would keep its peak size.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

from worker.bus import Queued
from worker.metrics import table
from worker.metrics.metrics import Metrics


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
    mallopt = _of_malloc("mallopt")
    for number, variable, value in _PARAMETERS:
        if mallopt is not None and variable not in os.environ:
            mallopt(number, value)


def give_back() -> None:
    """Return all free pages to the system; do nothing without glibc.

    Takes 7 ms for a heap of 60 MB with nothing to return, and 47 ms to return 240 MB.
    """
    trim = _of_malloc("malloc_trim")
    if trim is not None:
        trim(0)


@cache
def _of_malloc(name: str) -> Callable[..., Any] | None:
    try:
        found: Callable[..., Any] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return None
    return found


_STATM = Path("/proc/self/statm")


def resident_bytes() -> int | None:
    """Return the resident memory of this process; None where the system doesn't say it."""
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def show_memory(
    metrics: Metrics,
    stores: Mapping[str, tuple[int, int]],
    queues: Mapping[str, Queued],
    queue_shares: Mapping[str, int],
    total: int,
) -> None:
    """Export what the process and its parts take of their shares of memory, in bytes.

    ``stores`` has both by part. Of the queues, those with a share are shown. ``total`` is the share
    of the process.
    """
    parts = dict(stores)
    for part in queues.keys() & queue_shares.keys():
        parts[part] = queues[part].size, queue_shares[part]
        metrics.set(table.QUEUED_MESSAGES, queues[part].messages, part)
    resident = resident_bytes()
    if resident is not None:
        parts["worker"] = resident, total
    for part, (used, share) in parts.items():
        metrics.set(table.MEMORY_BYTES, used, part)
        metrics.set(table.MEMORY_SHARE_BYTES, share, part)


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
