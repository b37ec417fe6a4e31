"""The stages. Each transforms records and sees no bus, clock or disk."""

from __future__ import annotations

from worker.stages.base import Burst, RestoreState, Shards, Stage, StageError, Status
from worker.stages.deaths import Deaths
from worker.stages.fingerprint import Fingerprint
from worker.stages.index import Index
from worker.stages.ownership import Parts, StoreParts, StoreReach, StoreSize
from worker.stages.refingerprint import Refingerprint
from worker.stages.reject_limit import RejectLimit
from worker.stages.replacement import LeftOut
from worker.stages.route import Route

__all__ = [
    "Burst",
    "Deaths",
    "Fingerprint",
    "Index",
    "LeftOut",
    "Parts",
    "Refingerprint",
    "RejectLimit",
    "RestoreState",
    "Route",
    "Shards",
    "Stage",
    "StageError",
    "Status",
    "StoreParts",
    "StoreReach",
    "StoreSize",
]
