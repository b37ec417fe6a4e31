"""How large a world is, how its workers are set up, and for how long its topics keep what."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.support.brokers import Brokers, Retention
from tests.world.clock import HOUR
from worker.settings.model import Settings
from worker.topology import Topology


@dataclass(frozen=True, slots=True)
class Keep:
    """For how many hours topics keep records; None: for ever. Offsets have their own hours.

    What the index is rebuilt from, ``fingerprints``, is kept for ever, or trimmed behind snapshots,
    unless there is a window.
    """

    documents: int | None = 24
    matches: int | None = 24
    outputs: int | None = 24
    offsets: int | None = 7 * 24
    fingerprints: int | None = None

    def apply(self, bus: Brokers, topology: Topology) -> None:
        """Set it on topics."""
        hours = {
            topology.documents: self.documents,
            topology.fingerprints: self.fingerprints,
            **{topology.matches(shard): self.matches for shard in range(topology.layout.shards)},
            **dict.fromkeys((topology.unique, topology.duplicate, topology.rejected), self.outputs),
        }
        for topic, kept in hours.items():
            if kept is not None:
                bus.retain(topic, Retention(kept * HOUR, segment_ms=kept * HOUR // 4))


@dataclass(frozen=True, slots=True)
class Measures:
    """Counts, small enough that a few documents take a worker through all that it does.

    ``batch`` is what one poll takes; a store is flushed after three. With ``snapshots``, shards are
    shipped so many seconds apart, two are kept, and the log before them is deleted.
    ``containment`` is `similarity.containment`.

    With ``standby``, every worker keeps the shards of all others warm. ``window`` is how long the
    index remembers; if documents are ``dated``, it goes by a field of theirs. If transactions
    ``overlap``, whoever commits lets the others write first: a log's records and markers come in
    the order that brokers get from workers that write at once. ``keep`` counts where time passes.
    """

    partitions: int = 2
    shards: int = 2
    batch: int = 4
    snapshots: float | None = None
    containment: float | None = None
    standby: bool = False
    window: str = "none"
    dated: bool = False
    overlap: bool = False
    keep: Keep = field(default_factory=Keep)

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
        "standby": "all" if measures.standby else "none",
        "window": measures.window,
    }
    if snapshots is not None:
        often = {"every_seconds": measures.snapshots, "keep": 2, "trim_log": True}
        index["snapshots"] = {"url": str(snapshots), **often}
    dates = {"time_field": "at"} if measures.dated else {}
    return Settings.model_validate(
        {
            "index": index,
            "similarity": {"containment": measures.containment},
            "documents": {"deletes": "forget", **dates},
            "worker": {"batch_records": measures.batch},
        }
    )
