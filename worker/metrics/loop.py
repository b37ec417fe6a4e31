"""The metrics of a stage's loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from worker.bus import TopicPartition
from worker.loop.options import LoopEvents
from worker.loop.transactions import Outcome
from worker.metrics.instruments import Instruments
from worker.metrics.series import Series

__all__ = ["LoopMetrics"]


class LoopMetrics(LoopEvents):
    """Counts polls, transactions and rebalances of one stage, and exports its lag."""

    def __init__(self, instruments: Instruments, stage: str) -> None:
        """Start at zero; ``stage`` is the label of all series."""
        self._stage = stage
        self._poll = instruments.gauge("neardup_last_poll_timestamp_seconds").labels(stage)
        self._records = instruments.counter("neardup_records_total").labels(stage)
        transactions = instruments.counter("neardup_transactions_total")
        self._outcomes = {
            outcome: transactions.labels(stage, outcome) for outcome in get_args(Outcome)
        }
        self._seconds = instruments.histogram("neardup_transaction_seconds").labels(stage)
        self._partitions = instruments.gauge("neardup_assigned_partitions").labels(stage)
        self._unread = instruments.gauge("neardup_unread_partitions").labels(stage)
        self._rebalances = instruments.counter("neardup_rebalances_total").labels(stage)
        self._lag = Series(instruments.gauge("neardup_consumer_lag_records"))

    def polled(self, records: int) -> None:
        """Count the records of a poll, and note its time."""
        self._poll.set_to_current_time()
        self._records.inc(records)

    def transaction(self, outcome: str, seconds: float) -> None:
        """Count a transaction by outcome, and observe its duration."""
        self._outcomes[outcome].inc()
        self._seconds.observe(seconds)

    def assigned(self, partitions: int) -> None:
        """Count a rebalance, after which the stage owns this many partitions."""
        self._partitions.set(partitions)
        self._rebalances.inc()

    def unread(self, partitions: int) -> None:
        """Export how many partitions that were added are not read."""
        self._unread.set(partitions)

    def unseated(self) -> None:
        """Export that the stage owns no partition."""
        self._partitions.set(0)
        self._unread.set(0)

    def lagging(self, lags: Mapping[TopicPartition, int]) -> None:
        """Export the lag in records of exactly these input partitions."""
        self._lag.show(
            {(self._stage, at.topic, str(at.partition)): lag for at, lag in lags.items()}
        )
