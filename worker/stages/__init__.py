"""The stages: each a transformation of records that sees no bus, clock or disk."""

from __future__ import annotations

from worker.stages.base import Burst, Stage, StageError
from worker.stages.fingerprint import Fingerprint, RejectLimit
from worker.stages.index import Index, IndexCounts
from worker.stages.route import Route, RouteCounts
from worker.stages.shards import RestoreState

__all__ = [
    "Burst",
    "Fingerprint",
    "Index",
    "IndexCounts",
    "RejectLimit",
    "RestoreState",
    "Route",
    "RouteCounts",
    "Stage",
    "StageError",
]
