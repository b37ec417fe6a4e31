"""What every run ends with."""

from __future__ import annotations

import tempfile
from hashlib import blake2b
from pathlib import Path
from typing import Final

from tests.support.checker import check, differences
from tests.support.checker.history import Source, Verdict, verdicts
from tests.support.checker.index import Dump, dump, index_differences, rebuilt
from tests.support.replay import replay
from tests.world.world import World
from worker.bus import Record
from worker.bus.memory.bus import MemoryBus
from worker.offline.embedded import create_topics
from worker.settings.model import Settings
from worker.stages.base import StageError
from worker.topology import Topology

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
        frames = world.archive.fingerprints
        settings, topology = world.settings, world.topology
        try:
            found += differences(verdicts(history), self.replayed(frames, settings, topology))
        except StageError as error:  # With a frame lost or doubled, there is nothing to compare.
            found.append(f"replayed: {error}")
        return [*found, *self.index_problems(world, settings, topology)]

    def index_problems(self, world: World, settings: Settings, topology: Topology) -> list[str]:
        """Compare each shard of the generation in use with one rebuilt from its log."""
        found: list[str] = []
        stores = {
            s: store for life in world.lives.values() for s, store in life.index.stores().items()
        }
        for shard in range(topology.layout.shards):
            if shard not in stores:
                found.append(f"shard {shard} has no owner")
                continue
            frames = world.archive.log(topology).frames
            fresh = self._rebuilt(frames, settings, topology, shard)
            found += list(index_differences(dump(stores[shard]), fresh))[:SHOWN]
        return found

    def replayed(
        self, frames: list[Record], settings: Settings, topology: Topology
    ) -> dict[Source, Verdict]:
        """Give the verdicts of a generation about all documents of a log."""
        key = _key(settings, topology, frames)
        if key not in self._verdicts:
            with tempfile.TemporaryDirectory(dir=self._directory) as place:
                self._verdicts[key] = replay(frames, settings, topology, 1, Path(place))
        return self._verdicts[key]

    def _rebuilt(
        self, frames: list[Record], settings: Settings, topology: Topology, shard: int
    ) -> Dump:
        key = _key(settings, topology, frames) + bytes((shard,))
        if key not in self._dumps:
            with tempfile.TemporaryDirectory(dir=self._directory) as place:
                bus = MemoryBus()
                create_topics(bus, topology)
                rules = settings.rules()
                self._dumps[key] = rebuilt(frames, topology, rules, shard, Path(place))
        return self._dumps[key]


def _key(settings: Settings, topology: Topology, records: list[Record]) -> bytes:
    index = settings.index
    digest = blake2b(f"{topology} {index.bucket_capacity} {index.absorb}".encode())
    for record in records:
        digest.update(repr((record.partition, record.offset, record.timestamp)).encode())
        digest.update(record.value or b"")
    return digest.digest()
