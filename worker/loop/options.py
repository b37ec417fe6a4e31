"""The options and events of a loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from worker.bus import TopicPartition

__all__ = ["LoopEvents", "LoopOptions"]


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """The limits and intervals of a loop."""

    max_records: int = 4_000
    max_bytes: int = 16 << 20
    wait_seconds: float = 0.1
    retry_seconds: float = 60.0
    """How long transactions may fail before the loop gives up."""
    catch_up_seconds: float = 30.0
    """How long after an assignment a backlog counts as one."""
    transaction_seconds: float = 4.0
    """The timeout of a transaction."""
    settle_seconds: float = 60.0
    """How long a quiet input is left alone once its position was committed."""
    renew_seconds: float = 6 * 3_600.0
    """How often unchanged offsets are committed again. Under KIP-848 an offset's expiry counts
    from its own commit, not from when the group became empty."""


class LoopEvents:
    """Receives what a loop does, in the loop's thread; by default it does nothing."""

    def polled(self, records: int) -> None:
        """Receive the number of records of a poll."""

    def transaction(self, outcome: str, seconds: float) -> None:
        """Receive how a transaction ended; see `Outcome`."""

    def assigned(self, partitions: int) -> None:
        """Receive the number of partitions in a new assignment."""

    def unread(self, partitions: int) -> None:
        """Receive how many more are assigned, and not read: they were added to their topics."""

    def unseated(self) -> None:
        """Learn that the group has taken all partitions away, until `assigned`."""

    def lagging(self, lags: Mapping[TopicPartition, int]) -> None:
        """Receive how many records each input is behind."""
