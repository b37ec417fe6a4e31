"""One worker's metrics."""

from __future__ import annotations

from collections.abc import Callable
from time import time

from worker.metrics.index import BuildingMetrics, IndexMetrics, RewritingMetrics
from worker.metrics.instruments import Instruments
from worker.metrics.loop import LoopMetrics
from worker.metrics.process import ProcessMetrics
from worker.metrics.queries import QueryMetrics
from worker.metrics.snapshots import SnapshotMetrics
from worker.metrics.verdicts import VerdictMetrics

__all__ = ["Metrics"]


class Metrics:
    """One object per area, each of which feeds its part of the table.

    Attributes:
        registry: the metrics of the table, and nothing else.
        verdicts: fed by *fingerprint* and *route*.
        index: fed by *index*.
        queries: fed by ``neardup serve``.
        building: fed by the loop of the next generation's *index*.
        rewriting: fed by *refingerprint*, which makes the next generation's fingerprints.
        snapshots: fed by the shipper of snapshots.
        process: fed by the worker's process.
    """

    def __init__(self, clock: Callable[[], float] = time) -> None:
        """Create all metrics; ``clock`` returns seconds since the epoch."""
        self._instruments = instruments = Instruments()
        self.registry = instruments.registry
        self.verdicts = VerdictMetrics(instruments, clock)
        self.index = IndexMetrics(instruments)
        self.queries = QueryMetrics(instruments)
        self.building = BuildingMetrics(instruments)
        self.rewriting = RewritingMetrics(instruments)
        self.snapshots = SnapshotMetrics(instruments)
        self.process = ProcessMetrics(instruments)

    def loop(self, stage: str) -> LoopMetrics:
        """Return the metrics that the loop of a stage feeds."""
        return LoopMetrics(self._instruments, stage)
