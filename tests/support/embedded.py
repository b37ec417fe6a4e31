"""An application on an in-process log of its own, which can crash and come back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from tests.support.checker import check, differences
from tests.support.checker.history import History, frame_ranges, verdict_of, verdicts
from tests.support.replay import replay
from worker.bus import Outgoing, Record, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.corrections.request import Forget, Request, encoded
from worker.corrections.state import Corrections
from worker.index.store import BandStore
from worker.offline.embedded import Embedded, create_topics
from worker.settings.model import Settings
from worker.stages.index import Index
from worker.wire.headers import CORRECTION, FORGET

Texts = Sequence[tuple[str, str]]
Verdicts = dict[str, tuple[tuple[str, float], ...]]

NOW = 1_700_000_000_000


class Unforgetting(MemoryBus):
    """A log that can tell after a trim what it has had.

    Attributes:
        gone: the records that were deleted, by partition.
    """

    def __init__(self) -> None:
        super().__init__(clock=lambda: NOW)
        self.gone: dict[TopicPartition, list[Record]] = {}

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        here = self.read(topic, partition, self.start_offset(topic, partition), 1 << 30)
        gone = self.gone.setdefault(TopicPartition(topic, partition), [])
        gone += [record for record in here if record.offset < before_offset]
        super().trim(topic, partition, before_offset)

    def all_of(self, topic: str) -> list[Record]:
        """Give all records that a topic has ever had."""
        found: list[Record] = []
        for number in range(self.partitions([topic])[topic] or 0):
            found += self.gone.get(TopicPartition(topic, number), [])
            found += self.read(topic, number, self.start_offset(topic, number), 1 << 30)
        return found


class Run:
    """An application on a bus of its own, which can crash and come back."""

    def __init__(
        self,
        directory: Path,
        *,
        partitions: int = 3,
        shards: int = 4,
        batch: int = 4_000,
        snapshots: Mapping[str, object] | None = None,
        window: str = "none",
        same_id: str = "duplicate",
        documents: Mapping[str, object] | None = None,
    ) -> None:
        self.settings = Settings.model_validate(
            {
                "index": {
                    "shards": shards,
                    "cache_bytes": 1 << 20,
                    "bucket_capacity": 3,
                    "snapshots": snapshots or {},
                    "window": window,
                    "same_id": same_id,
                },
                "worker": {"batch_records": batch},
                "documents": documents or {},
            }
        )
        self.topology = self.settings.topology(partitions)
        self.bus = Unforgetting()
        create_topics(self.bus, self.topology)
        self._directory = directory
        self._lives = count()
        self._state = directory / "state"
        self.inputs: list[Record] = []
        self.embedded = self._open()

    def _open(self) -> Embedded:
        return Embedded(self.settings, self.topology, self.bus, self._state)

    def feed(self, texts: Texts, *, one_by_one: bool = False) -> None:
        for ident, text in texts:
            value = json.dumps({"id": ident, "text": text}).encode()
            partition = len(self.inputs) % self.topology.layout.partitions
            self.put(Outgoing(self.topology.documents, partition, None, value))
            if one_by_one:
                self.embedded.run_until_idle()

    def forget(self, ident: str, partition: int) -> None:
        """Write a tombstone."""
        self.put(Outgoing(self.topology.documents, partition, ident.encode(), None))

    def correct(self, request: Request) -> None:
        """Write what a person corrects, with a tombstone if a document is forgotten."""
        headers = [(CORRECTION, encoded(request))]
        if isinstance(request, Forget):
            headers.append((FORGET, request.id.encode()))
        partition = len(self.inputs) % self.topology.layout.partitions
        key = request.id.encode()
        self.put(Outgoing(self.topology.documents, partition, key, None, tuple(headers)))

    def corrections(self) -> Corrections:
        """Return what shard 0 has of what people have corrected."""
        (index,) = [one.stage for one in self.embedded.loops if isinstance(one.stage, Index)]
        store = index.stores()[0]
        assert isinstance(store, BandStore)
        return store.corrections

    def put(self, record: Outgoing) -> None:
        (topic, partition), offset = self.bus.append(record)
        self.inputs.append(
            Record(topic, partition, offset, NOW, record.key, record.value, record.headers)
        )

    def finish(self) -> History:
        self.embedded.run_until_idle()
        return self.history()

    def restart(self) -> None:
        """End well, and come back."""
        self.embedded.close()
        self.embedded = self._open()

    def crash(self) -> None:
        """Come back with what was on disk, all write buffers lost."""
        self._state = self._directory / f"life-{next(self._lives)}"
        before = self.embedded
        disk = before.application.directories.path(0).parent
        if disk.exists():
            shutil.copytree(disk, self._state)
        for loop in before.loops:
            loop.stage.close()
        for lock in self._state.glob("*/LOCK"):
            lock.unlink()
        self.embedded = self._open()

    def history(self) -> History:
        topology = self.topology
        return History(
            self.inputs,
            self.bus.all_of(topology.unique),
            self.bus.all_of(topology.duplicate),
            self.bus.all_of(topology.rejected),
            frames=frame_ranges(self.bus.all_of(topology.fingerprints), topology.layout.id),
        )

    def prove(self, directory: Path, shards: int = 1) -> History:
        """Check all invariants, and that a replay of the run's order comes to the same."""
        history = self.finish()
        assert not check(history)
        frames = self.bus.all_of(self.topology.fingerprints)
        expected = replay(frames, self.settings, self.topology, shards, directory)
        assert not differences(verdicts(history), expected)
        return history


def first_matches(history: History) -> dict[str, str]:
    """Give the first match of each duplicate, by id."""
    found = {
        json.loads(one.value)["id"]: verdict_of(one).first for one in history.duplicate if one.value
    }
    return {ident: first[0] for ident, first in found.items() if first is not None}


def by_id(history: History) -> Verdicts:
    return {
        json.loads(record.value)["id"]: verdict_of(record).matches
        for record in (*history.unique, *history.duplicate)
        if record.value is not None
    }
