"""The options of a loop."""

from __future__ import annotations

from dataclasses import dataclass

from worker.loop.tracing import Trace


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """The limits and intervals of a loop."""

    max_records: int = 4_000
    max_bytes: int = 16 << 20
    wait_seconds: float = 0.1
    retry_seconds: float = 60.0
    """The time for which transactions may fail before the loop gives up."""
    catch_up_seconds: float = 30.0
    """The time after an assignment in which a backlog counts as one."""
    transaction_seconds: float = 4.0
    """The timeout of a transaction."""
    settle_seconds: float = 60.0
    """The time for which a quiet input is left alone once its position was committed."""
    renew_seconds: float = 6 * 3_600.0
    """The time after which unchanged offsets are committed again. Under KIP-848 an offset's expiry
    counts from its own commit, not from when the group became empty."""
    trace: Trace | None = None
    """Runs the work on what was polled in a span; None: there are no spans."""
