"""Reports on shards: what is exported of them, and what the log says of documents' dates.

For what dates do to the index, see `core/src/index/clock.rs`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from lsh._core import Decision
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.stages.base import Status
from worker.stages.judge import StoreFigures

_log = logging.getLogger(__name__)

_WITHOUT_NOW = 100
"""Of so many documents, some should have a time."""
_MORE = 10
"""Old documents are logged again when there are so many times as many."""


class ShardFigures:
    """Shows exactly the shards that a worker has now, about once a second."""

    def __init__(self) -> None:
        """Start without shards."""
        self._eras: dict[int, int] = {}
        self._stalled: dict[int, float] = {}

    def status(self, metrics: Metrics, status: Status, open_shards: Iterable[int] = ()) -> None:
        """Show which shards answer and which don't yet, and those that are kept warm."""
        restored = {}
        for shard, state in status.restoring.items():
            restored[str(shard), "done"] = float(state.bytes_done)
            restored[str(shard), "total"] = float(state.bytes_total)
        remaining = {(str(shard),): 0 for shard in open_shards}
        remaining |= {(str(shard),): state.remaining for shard, state in status.restoring.items()}
        lag = {(str(shard),): lag for shard, lag in status.standby_lag.items()}
        metrics.show(table.RESTORE_BYTES, restored)
        metrics.show(table.RESTORE_REMAINING_RECORDS, remaining)
        metrics.show(table.STANDBY_LAG_RECORDS, lag)

    def stores(self, metrics: Metrics, stores: Mapping[int, StoreFigures]) -> None:
        """Show open stores by shard. Call it only in the thread that uses them."""
        shown = {str(shard): store for shard, store in stores.items()}
        parts = {shard: store.parts() for shard, store in shown.items()}
        ages = {shard: store.oldest_seconds() for shard, store in shown.items()}
        for gauge, values in (
            (table.INDEX_BYTES, {shard: store.size_bytes() for shard, store in shown.items()}),
            (table.INDEX_KEYS, {shard: store.keys_estimate() for shard, store in shown.items()}),
            (table.INDEX_MEMORY_BYTES, {s: store.memory_bytes() for s, store in shown.items()}),
            (
                table.INDEX_PENDING_COMPACTION_BYTES,
                {shard: store.pending_compaction_bytes() for shard, store in shown.items()},
            ),
            (table.INDEX_KEPT_DOCUMENTS, {shard: of.documents for shard, of in parts.items()}),
            (table.INDEX_TIME_SLICES, {shard: of.time_slices for shard, of in parts.items()}),
            (table.INDEX_OLDEST_SECONDS, {s: age for s, age in ages.items() if age is not None}),
        ):
            metrics.show(gauge, {(shard,): value for shard, value in values.items()})
        for gauge, counts in (
            (table.INDEX_RUNS, {shard: of.runs for shard, of in parts.items()}),
            (table.INDEX_POSTINGS, {shard: of.postings for shard, of in parts.items()}),
        ):
            by_level = {
                (shard, level): n for shard, of in counts.items() for level, n in of.items()
            }
            metrics.show(gauge, by_level)
        self._count(metrics, stores)

    def _count(self, metrics: Metrics, stores: Mapping[int, StoreFigures]) -> None:
        """Count what stores have done since they were shown last."""
        stalled, eras = self._stalled, self._eras
        self._stalled = {shard: store.stalled_seconds for shard, store in stores.items()}
        for shard, seconds in self._stalled.items():
            # A store that was opened anew begins at 0.
            more = seconds - stalled.get(shard, 0.0)
            metrics.add(table.INDEX_STALLED_SECONDS, more if more >= 0 else seconds)
        self._eras = {shard: store.expired_eras() for shard, store in stores.items()}
        for shard, count in self._eras.items():
            # A store that was rebuilt, or came from a snapshot, has given back fewer.
            metrics.add(table.INDEX_EXPIRED_TIME_SLICES, max(0, count - eras.get(shard, count)))


class DateReports:
    """Logs documents older than the window, and leaps of the index's time."""

    def __init__(self, *, window: bool) -> None:
        """Begin without any; ``window`` is whether the index forgets what is old."""
        self._window = window
        self._older = 0
        self._told_at = 1
        self._timeless = 0

    def judged(self, decision: Decision, documents: int) -> None:
        """Take what was decided about so many documents, and committed."""
        self._await(decision, documents)
        self._older += decision.older
        if self._older >= self._told_at:
            _log.info(
                "documents dated more than index.window before now, which is %s: %d so far. They"
                " count as of now (docs/how-to/operate.md, 'How long the index remembers')",
                _shown(decision.now),
                self._older,
            )
            while self._told_at <= self._older:
                self._told_at *= _MORE
        if decision.leap is not None:
            _warn(*decision.leap)

    def _await(self, decision: Decision, documents: int) -> None:
        """Warn once if there is no now for long, although there is a window."""
        told = self._timeless >= _WITHOUT_NOW
        if decision.now is not None or not self._window or told:
            return
        self._timeless += documents
        if self._timeless >= _WITHOUT_NOW:
            _log.warning(
                "of the first %d documents, %d have a time: nothing expires before 32 have"
                " (index.window, documents.time_field)",
                self._timeless,
                decision.dated,
            )


def _warn(before: int, after: int) -> None:
    _log.warning(
        "now went from %s to %s at one document, by more than index.window: the index has forgotten"
        " what is older. That is right after a pause of the feed. If the dates are wrong, nothing"
        " expires until documents are dated %s (docs/how-to/operate.md, 'Wrong dates')",
        _shown(before),
        _shown(after),
        _shown(after),
    )


def _shown(time: int | None) -> str:
    """Return a time in ms as ISO 8601; one that no calendar has as a number."""
    if time is None:
        return "none"
    try:
        moment = datetime.fromtimestamp(time / 1_000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time} ms"
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
