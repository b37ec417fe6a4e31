"""Feeds of weeks in small, fingerprinted as workers do it, without Kafka.

Real time passes in numbers only: windows end, partitions fall behind and catch up, ids come again,
documents are forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from tests.support.corpus import corpus
from tests.support.stages import process
from worker.app import Application
from worker.bus import Record, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.offline.embedded import create_topics
from worker.settings.model import Settings
from worker.topology import Topology

PARTITIONS: Final = 4
MEAN_MS: Final = 26
BEGAN: Final = 1_700_000_000_000
FORGOTTEN: Final = 0.02


class _Fed(NamedTuple):
    """A document or a tombstone, and when it is read."""

    partition: int
    key: bytes
    value: bytes | None
    time: int
    read: int


def feed_settings(chance: Random) -> Settings:
    """Return settings under which much happens in a few seconds of a feed."""
    index: dict[str, object] = {
        "run_documents": chance.choice([32, 256]),
        "flush_documents": chance.choice([100, 300, 1_000]),
        "same_id": chance.choice(["duplicate", "replace", "ignore"]),
        "bucket_capacity": chance.choice([8, 16, 32]),
    }
    if chance.random() < 0.8:
        index["window"] = chance.choice(["8s", "20s", "60s"])
    containment = {"containment": 0.9} if chance.random() < 0.3 else {}
    return Settings.model_validate({"app": "feed", "index": index, "similarity": containment})


def _feed(count: int, seed: int, chance: Random) -> list[_Fed]:
    """Return documents, some of which have the id of an earlier one, and tombstones."""
    fed: list[_Fed] = []
    clock, again = BEGAN, chance.choice([0.0, 0.05, 0.2])
    for number, (ident, text) in enumerate(corpus(count, seed)):
        clock += round(chance.uniform(0.2, 1.8) * MEAN_MS)
        if chance.random() < 0.003:
            clock += chance.randint(1_000, 9_000)
        partition, key = number % PARTITIONS, ident.encode()
        if fed and chance.random() < again:
            partition, key = fed[chance.randrange(max(0, len(fed) - 400), len(fed))][:2]
        value = json.dumps({"id": key.decode(), "text": text}).encode()
        fed.append(_Fed(partition, key, value, clock, clock))
        if chance.random() < FORGOTTEN:
            partition, key = chance.choice(fed)[:2]
            fed.append(_Fed(partition, key, None, clock, clock))
    return fed


def _held_up(fed: list[_Fed], chance: Random) -> list[_Fed]:
    """Have some parts be read late, one partition after the other, as after an outage."""
    fed = list(fed)
    for _ in range(5):
        first = chance.randrange(len(fed))
        part = fed[first : first + chance.randint(50, 700)]
        late = [one._replace(read=part[-1].time) for one in part]
        fed[first : first + len(part)] = sorted(late, key=lambda one: one.partition)
    return fed


def frames_of_feed(
    count: int, seed: int, settings: Settings, topology: Topology, path: Path
) -> list[Record]:
    """Return what *fingerprint* writes of so many documents, in transactions of any size."""
    chance = Random(seed)
    fed = _held_up(_feed(count, seed, chance), chance)
    bus = MemoryBus()
    create_topics(bus, topology)
    stage = Application(settings, topology, bus, path).stage("fingerprint")
    places = [TopicPartition(topology.documents, number) for number in range(PARTITIONS)]
    stage.adopt(dict.fromkeys(places, 0), lambda _: (0, 1 << 60))
    frames: list[Record] = []
    offsets, clock = [0] * PARTITIONS, 0
    for some in _cut(fed, chance):
        records = []
        for one in some:
            offset = offsets[one.partition]
            offsets[one.partition] += 1
            records.append(
                Record(topology.documents, one.partition, offset, one.time, one.key, one.value)
            )
        made = process(stage, records)
        clock = max(clock, max(one.read for one in some) + chance.randint(2, 300))
        assert {frame.topic for frame in made.records} <= {topology.fingerprints}
        frames += [
            Record(topology.fingerprints, 0, number, clock, frame.key, frame.value)
            for number, frame in enumerate(made.records, len(frames))
        ]
    stage.close()
    return frames


def _cut(fed: list[_Fed], chance: Random) -> Iterator[list[_Fed]]:
    first = 0
    while first < len(fed):
        size = chance.choice([1, 8, 8, 8, 8, 30, 200])
        yield fed[first : first + size]
        first += size
