"""The filter without Kafka: the same stages on the in-process log, with state that is kept."""

from __future__ import annotations

from worker.offline.filter import Counts, Line, OfflineFilter, Verdict, offline_settings
from worker.offline.generations import Generations, StateError

__all__ = [
    "Counts",
    "Generations",
    "Line",
    "OfflineFilter",
    "StateError",
    "Verdict",
    "offline_settings",
]
