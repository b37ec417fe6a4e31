"""What a worker logs about its work: once that it is ready, and its rates every minute."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.visible import counted

_log = logging.getLogger(__name__)

_EVERY_SECONDS = 60.0
_VERDICTS = ("unique", "duplicate", "rejected")


@dataclass(frozen=True, slots=True)
class Seats:
    """What a worker owns, and how much of it there is; None for stages that it doesn't run."""

    partitions: int | None
    of_partitions: int
    shards: int | None
    of_shards: int

    def __str__(self) -> str:
        """Return both in words."""
        parts = []
        if self.partitions is not None:
            parts.append(f"{self.partitions} of {counted(self.of_partitions, 'partition')}")
        if self.shards is not None:
            parts.append(f"{self.shards} of {counted(self.of_shards, 'shard')}")
        return ", ".join(parts)


class Reports:
    """Logs that a worker is ready, then its rates, unless nothing happens."""

    def __init__(
        self,
        stages: Collection[str],
        counts: Callable[[], Mapping[str, float]],
        now: float,
    ) -> None:
        """Take the stages that run, how to count (see `totals`), and the time in seconds."""
        self._stages = stages
        self._counts = counts
        self._began = now
        self._ready = False
        self._reported = now
        self._before = counts()
        self._idle = False

    def look(self, now: float, seats: Seats, behind: Mapping[str, int], *, ready: bool) -> None:
        """Log what is due. Called about once a second.

        ``behind`` is by stage, in records.
        """
        if ready and not self._ready:
            self._ready = True
            _log.info("ready after %.1f s: %s", now - self._began, seats)
        seconds = now - self._reported
        if seconds < _EVERY_SECONDS:
            return
        counts = self._counts()
        rates = {name: (counts[name] - self._before[name]) / seconds for name in counts}
        self._before, self._reported = counts, now
        idle = not any(rates.values()) and not any(behind.values())
        if not (idle and self._idle):
            self._report(rates, behind)
        self._idle = idle

    def _report(self, rates: Mapping[str, float], behind: Mapping[str, int]) -> None:
        shown = []
        if "fingerprint" in self._stages:
            shown.append(f"{rates['fingerprint']:,.1f} documents/s in")
        if "route" in self._stages:
            shown += [f"{verdict} {rates[verdict]:,.1f}/s" for verdict in _VERDICTS]
        elif "fingerprint" in self._stages:
            shown.append(f"rejected {rates['rejected']:,.1f}/s")
        else:
            shown.append(f"{rates['index']:,.1f} frames/s in")
        lag = ", ".join(f"{stage} {records:,}" for stage, records in behind.items())
        rounded = {name: round(rate, 1) for name, rate in rates.items()}
        _log.info(
            "%s; behind: %s",
            ", ".join(shown),
            lag,
            extra={"per_second": rounded, "behind": dict(behind)},
        )


def totals(metrics: Metrics, stages: Collection[str]) -> dict[str, float]:
    """Return the records that each stage has read, and the documents of each verdict."""
    read = {stage: metrics.value(table.RECORDS, stage) or 0.0 for stage in stages}
    published = {verdict: metrics.value(table.DOCUMENTS, verdict) or 0.0 for verdict in _VERDICTS}
    return read | published
