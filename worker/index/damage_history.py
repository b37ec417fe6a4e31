"""The history of damaged stores, so that a worker doesn't restore a bad one for ever."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from worker.index.snapshots.manifest import Manifest
from worker.index.snapshots.repository import ShardSnapshots, file_digest
from worker.index.snapshots.soundness import rotten

_log = logging.getLogger(__name__)

_ROUNDS = 3
"""How often a shard is rebuilt from the same snapshot, or the log, without getting further."""


@dataclass(slots=True)
class _Shard:
    """Where a shard's stores came from, and how far they got."""

    source: Manifest | None = None
    made_from: str = "what was here"
    reached: int = -1
    rounds: Counter[str] = field(default_factory=Counter)
    why: str = ""
    suspect: bool = False
    """Whether the last store that was put aside still has to be examined."""


class DamageHistory:
    """The damage history of all shards. Use each shard from one thread at a time."""

    def __init__(self) -> None:
        """Begin with an empty history."""
        self._shards: dict[int, _Shard] = {}

    def made_from(self, shard: int, source: Manifest | None) -> None:
        """Note what a shard's store is made from: a snapshot, or the log alone if None."""
        known = self._shards.setdefault(shard, _Shard())
        known.source = source
        known.made_from = f"the snapshot at offset {source.offset}" if source else "the log"

    def note(self, shard: int, offset: int, why: str) -> None:
        """Note that a store was found damaged at an offset."""
        known = self._shards.setdefault(shard, _Shard())
        if offset > known.reached:
            known.reached = offset
            known.rounds.clear()
        known.rounds[known.made_from] += 1
        known.why = why
        known.suspect = True

    def suspect(self, shard: int) -> None:
        """Note that a store could not be opened."""
        self._shards.setdefault(shard, _Shard()).suspect = True

    def circle(self, shard: int) -> str | None:
        """Return why rebuilding the shard again is useless; None if it may help."""
        known = self._shards.get(shard)
        if known is None or known.rounds[known.made_from] < _ROUNDS:
            return None
        tried = ", ".join(f"{name} ({count}x)" for name, count in known.rounds.items())
        return f"no store got past offset {known.reached}; tried {tried}; last failure: {known.why}"

    def examine(
        self,
        shard: int,
        aside: Path,
        snapshots: ShardSnapshots,
        on_bytes: Callable[[int], None],
    ) -> None:
        """Find out whether the snapshots are to blame for a store that was put aside.

        A corrupt table that the snapshots also have was corrupt when it was shipped. If all
        tables are sound, but the store was found damaged at the same point as the one before,
        the snapshot that it was made from is to blame.
        """
        known = self._shards.get(shard)
        if known is None or not known.suspect:
            return
        try:
            found = rotten(sorted(aside.glob("*.sst")), on_bytes=on_bytes)
        except OSError as error:
            _log.warning("shard %d: the store put aside can't be examined: %s", shard, error)
            known.suspect = False
            return
        digests = {file_digest(aside / name): name for name in found}
        for digest in sorted(snapshots.holds(digests)):
            name = digests[digest]
            snapshots.distrust(digest, f"{name} is corrupt: {found[name]}")
        for name, why in found.items():
            _log.warning("shard %d: table %s of the store put aside: %s", shard, name, why)
        if not found and known.source is not None and known.rounds.total() > 1:
            snapshots.distrust(known.source.name, known.why)
        known.suspect = False
