"""How much memory the process and its parts have."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from worker.bus import Queued
from worker.metrics import Metrics, table

__all__ = ["resident_bytes", "show_memory"]

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
