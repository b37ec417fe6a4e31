"""How large a run is, and how its workers are set up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from worker.settings import Settings

__all__ = ["Measures"]


@dataclass(frozen=True, slots=True)
class Measures:
    """Counts, small enough that a few documents take a worker through all that it does.

    ``batch`` is what one poll takes; a store is flushed after three. With ``snapshots``,
    shards are shipped at every chance, two are kept, and the log before them is deleted.
    ``containment`` is `similarity.containment`.
    """

    partitions: int = 2
    shards: int = 2
    batch: int = 4
    snapshots: bool = False
    containment: float | None = None

    def settings(self, directory: Path) -> Settings:
        """Give the workers' settings; snapshots lie in the directory."""
        return _settings(self, directory / "snapshots" if self.snapshots else None)


@cache
def _settings(measures: Measures, snapshots: Path | None) -> Settings:
    index: dict[str, object] = {
        "shards": measures.shards,
        "cache_bytes": 1 << 20,
        "run_documents": 16,
        "bucket_capacity": 3,
        "flush_documents": 3 * measures.batch,
    }
    if snapshots is not None:
        url = str(snapshots)
        index["snapshots"] = {"url": url, "every_seconds": 0.001, "keep": 2, "trim_log": True}
    return Settings.model_validate(
        {
            "index": index,
            "similarity": {"containment": measures.containment},
            "documents": {"deletes": "forget"},
            "worker": {"batch_records": measures.batch},
        }
    )
