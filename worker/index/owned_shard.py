"""A shard that a worker owns, with its open store."""

from __future__ import annotations

from dataclasses import dataclass

from worker.generations.turns import NEVER
from worker.index.log_range import LogRange
from worker.index.store import BandStore

__all__ = ["OwnedShard"]


@dataclass(slots=True)
class OwnedShard:
    """An open store, its log, and the offset from which on it answers, `NEVER` if it is built."""

    store: BandStore
    log: LogRange
    committed: int

    @property
    def silent(self) -> bool:
        """Return whether the frames that it reads were already answered."""
        return self.store.offset < self.committed < NEVER
