"""The filter without Kafka: the same stages on the in-process log, with persistent state."""

from __future__ import annotations

from worker.offline.filter import Counts, Line, OfflineFilter, Verdict, offline_settings
from worker.offline.state_versions import StateError, StateVersions, current_index

__all__ = [
    "Counts",
    "Line",
    "OfflineFilter",
    "StateError",
    "StateVersions",
    "Verdict",
    "current_index",
    "offline_settings",
]
