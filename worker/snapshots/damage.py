"""What a worker knows of stores that proved damaged, so that it doesn't restore them for ever."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from worker.snapshots.manifest import Manifest
from worker.snapshots.repository import ShardSnapshots, file_digest
from worker.snapshots.soundness import rotten

__all__ = ["Damages"]

_log = logging.getLogger(__name__)

_ROUNDS = 3
"""So often a shard is made from the same snapshot, or log, without getting further by it."""


@dataclass(slots=True)
class _Shard:
    """Where a shard's stores came from, and how far they got."""

    source: Manifest | None = None
    made_from: str = "what was here"
    reached: int = -1
    rounds: Counter[str] = field(default_factory=Counter)
    why: str = ""
    suspect: bool = False
    """Whether the store put aside last has still to be examined."""


class Damages:
    """Of all shards; each is dealt with by one thread at a time."""

    def __init__(self) -> None:
        """Know of none."""
        self._shards: dict[int, _Shard] = {}

    def made_from(self, shard: int, source: Manifest | None) -> None:
        """Note what a shard's store is made from: a snapshot, or nothing but the log."""
        known = self._shards.setdefault(shard, _Shard())
        known.source = source
        known.made_from = f"the snapshot at offset {source.offset}" if source else "the log"

    def note(self, shard: int, offset: int, why: str) -> None:
        """Note that a store proved damaged when it had come so far."""
        known = self._shards.setdefault(shard, _Shard())
        if offset > known.reached:
            known.reached = offset
            known.rounds.clear()
        known.rounds[known.made_from] += 1
        known.why = why
        known.suspect = True

    def suspect(self, shard: int) -> None:
        """Note that a store could not even be opened."""
        self._shards.setdefault(shard, _Shard()).suspect = True

    def circle(self, shard: int) -> str | None:
        """Say why it is no use to make the shard's store once more; None: it may be."""
        known = self._shards.get(shard)
        if known is None or known.rounds[known.made_from] < _ROUNDS:
            return None
        tried = ", ".join(f"{name} ({count}x)" for name, count in known.rounds.items())
        return f"no store came past offset {known.reached}, of {tried}: the last one, {known.why}"

    def examine(
        self,
        shard: int,
        aside: Path,
        snapshots: ShardSnapshots,
        on_bytes: Callable[[int], None],
    ) -> None:
        """Find out whether the snapshots are to blame for a store that was put aside.

        A rotten table that they have, too, was rotten when it was shipped. A store whose
        tables are all sound, but which proved damaged again where the one before had, can
        only owe that to the snapshot that it was made from.
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
            snapshots.distrust(digest, f"{name} is rotten: {found[name]}")
        for name, why in found.items():
            _log.warning("shard %d: the table %s of the store put aside: %s", shard, name, why)
        if not found and known.source is not None and known.rounds.total() > 1:
            snapshots.distrust(known.source.name, known.why)
        known.suspect = False
