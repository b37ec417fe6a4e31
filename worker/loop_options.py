"""What a loop is given besides its stage and its seat."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LoopEvents", "LoopOptions"]


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """How much one poll takes at most, and how long it waits for a first record."""

    max_records: int = 4_000
    max_bytes: int = 16 << 20
    wait_seconds: float = 0.1
    retry_seconds: float = 60.0
    """How long the same burst may be rolled back before the loop gives up."""
    catch_up_seconds: float = 30.0
    """How long after an assignment a backlog counts as one."""
    transaction_seconds: float = 4.0
    """After how long a transaction times out."""
    settle_seconds: float = 60.0
    """How long an input that brings nothing is left alone once it was settled."""
    renew_seconds: float = 6 * 3_600.0
    """How often offsets that have not moved are committed again. Under KIP-848 an offset expires
    so long after its own commit, and not after its group became empty."""


class LoopEvents:
    """What metrics want to know of a loop; each method may be overridden."""

    def polled(self, records: int) -> None:
        """A poll came back."""

    def transaction(self, outcome: str, seconds: float, records: int) -> None:
        """A transaction ended as ``committed``, ``aborted`` or ``unknown``."""

    def assigned(self, partitions: int) -> None:
        """The assignment changed."""
