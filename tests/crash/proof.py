"""What every run ends with."""

from __future__ import annotations

import tempfile
from hashlib import blake2b
from pathlib import Path
from typing import Final

from tests.crash.world import World
from tests.support.checker import (
    Dump,
    Source,
    Verdict,
    check,
    differences,
    dump,
    index_differences,
    rebuilt,
    verdicts,
)
from tests.support.replay import replay
from worker.app import Application
from worker.bus.port import Record
from worker.stages import StageError

__all__ = ["Oracle"]

SHOWN: Final = 5


class Oracle:
    """Says what is wrong with a run; remembers what logs come to, for many runs have the same."""

    def __init__(self, directory: Path) -> None:
        """Take a place for the stores of replays."""
        self._directory = directory
        self._verdicts: dict[bytes, dict[Source, Verdict]] = {}
        self._dumps: dict[bytes, Dump] = {}

    def problems(self, world: World) -> list[str]:
        """Check all invariants, the verdicts against a replay, each shard against its log."""
        history = world.history()
        found = check(history)
        frames = world.auditor.fingerprints
        try:
            found += differences(verdicts(history), self._replayed(world, frames))
        except StageError as error:  # With a frame lost or doubled, there is nothing to compare.
            found.append(f"replayed: {error}")
        stores = {
            s: store for life in world.lives.values() for s, store in life.index.stores().items()
        }
        for shard in range(world.topology.layout.shards):
            if shard not in stores:
                found.append(f"shard {shard} has no owner")
                continue
            fresh = self._rebuilt(world, shard)
            found += list(index_differences(dump(stores[shard]), fresh))[:SHOWN]
        return found

    def _replayed(self, world: World, frames: list[Record]) -> dict[Source, Verdict]:
        key = _key(world, frames)
        if key not in self._verdicts:
            with tempfile.TemporaryDirectory(dir=self._directory) as place:
                self._verdicts[key] = replay(frames, world.settings, world.topology, 1, Path(place))
        return self._verdicts[key]

    def _rebuilt(self, world: World, shard: int) -> Dump:
        frames = world.auditor.fingerprints
        key = _key(world, frames) + bytes((shard,))
        if key not in self._dumps:
            with tempfile.TemporaryDirectory(dir=self._directory) as place:
                application = Application(world.settings, world.topology, world.bus, Path(place))
                self._dumps[key] = rebuilt(
                    frames, world.topology, application.rules(), shard, Path(place)
                )
        return self._dumps[key]


def _key(world: World, records: list[Record]) -> bytes:
    digest = blake2b(f"{world.topology} {world.settings.index.bucket_capacity}".encode())
    for record in records:
        digest.update(repr((record.partition, record.offset, record.timestamp)).encode())
        digest.update(record.value or b"")
    return digest.digest()
