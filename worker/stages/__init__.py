"""The stages. Each transforms records and sees no bus, clock or disk."""

from __future__ import annotations

from worker.stages.base import Burst, RestoreState, Shards, Stage, StageError, Status
from worker.stages.deaths import Deaths
from worker.stages.fingerprint import Fingerprint, FingerprintEvents
from worker.stages.index import Index, IndexCounts, IndexEvents
from worker.stages.ownership import Parts, StoreParts, StoreReach, StoreSize
from worker.stages.refingerprint import (
    Refingerprint,
    RefingerprintCounts,
    RefingerprintEvents,
)
from worker.stages.reject_limit import RejectLimit
from worker.stages.replacement import LeftOut
from worker.stages.route import Route, RouteCounts, RouteEvents

__all__ = [
    "Burst",
    "Deaths",
    "Fingerprint",
    "FingerprintEvents",
    "Index",
    "IndexCounts",
    "IndexEvents",
    "LeftOut",
    "Parts",
    "Refingerprint",
    "RefingerprintCounts",
    "RefingerprintEvents",
    "RejectLimit",
    "RestoreState",
    "Route",
    "RouteCounts",
    "RouteEvents",
    "Shards",
    "Stage",
    "StageError",
    "Status",
    "StoreParts",
    "StoreReach",
    "StoreSize",
]
