"""A shard that a worker owns: its open store, and the replay of frames that were answered."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from worker.generations.turns import NEVER
from worker.index.log_range import LogRange
from worker.index.store import BandStore

_log = logging.getLogger(__name__)

_LOG_SECONDS = 10.0


@dataclass(slots=True)
class _Replay:
    """Where a replay began, and when it was last logged."""

    documents: int
    began: float
    logged: float


@dataclass(slots=True)
class OwnedShard:
    """An open store, its log, and the offset from which on it answers, `NEVER` if it is built."""

    store: BandStore
    log: LogRange
    committed: int
    _replay: _Replay | None = None

    @property
    def silent(self) -> bool:
        """Return whether the frames that it reads were already answered."""
        return self.store.offset < self.committed < NEVER

    def report(self, number: int, now: float) -> None:
        """Log the start, the progress and the end of a replay; ``now`` is in seconds."""
        replay = self._replay
        if replay is None:
            if self.silent:
                self._replay = _Replay(self.store.documents, now, now)
                _log.info(
                    "shard %d replays its log from offset %d to %d before it answers",
                    number,
                    self.store.offset,
                    self.committed,
                )
        elif not self.silent or now - replay.logged >= _LOG_SECONDS:
            replay.logged = now
            _log.info(
                "shard %d %s: %d documents in %.1f s, at offset %d of %d",
                number,
                "is replaying" if self.silent else "answers",
                self.store.documents - replay.documents,
                now - replay.began,
                self.store.offset,
                self.committed,
            )
            if not self.silent:
                self._replay = None
