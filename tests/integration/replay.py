"""A run's own sequence, judged again by one shard, or many.

The stages are pure, so the replay needs no log: *sequence* and *index* are handed the
very records of the run's ``fingerprints``, with their offsets and times, of which sequence
numbers and "now" are made. So whole verdicts can be compared, sequence numbers included.
Only the layout, which names P, is stamped anew. What *route* does, the joining of answers
with documents, is left out, and done here in other words: group, sort, cut.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

import msgspec
import numpy as np

from tests.integration.checker import Source, Verdict
from worker.app import Application
from worker.bus.memory import MemoryBus
from worker.bus.port import Record, TopicPartition
from worker.embedded import create_topics
from worker.frames import (
    F32,
    POSITION_BITS,
    U16,
    U32,
    U64,
    FingerprintFrame,
    MatchFrame,
    decode,
    encode,
)
from worker.settings import Settings
from worker.stages import Stage
from worker.topology import Topology

__all__ = ["cut", "replay"]

Matches = dict[Source, dict[int, tuple[float, str]]]


def replay(
    fingerprints: Sequence[Record],
    settings: Settings,
    topology: Topology,
    shards: int,
    directory: Path,
) -> dict[Source, Verdict]:
    """Judge a run's frames in their order, with P = ``shards``, in bursts of any size."""
    other = replace(topology, shards=shards)
    bus = MemoryBus()
    create_topics(bus, other)
    application = Application(settings, other, bus, directory / f"replay-{shards}")
    bands = cut(application.stage("sequence"), fingerprints, topology, other)
    sequences: dict[Source, int] = {}
    matches: Matches = {}
    index = application.stage("index")
    index.adopt({TopicPartition(other.bands, n): 0 for n in range(shards)}, _whole_log)
    try:
        for burst in _bursts(bands, 60 * shards):
            produced = index.process(burst)
            assert produced is not None
            for outgoing in produced.records:
                _take(decode(MatchFrame, outgoing.value, other.layout), sequences, matches)
            index.committed()
    finally:
        index.close()
    limit = settings.index.max_matches
    return {
        at: Verdict(sequence, _best(matches.get(at, {}), limit))
        for at, sequence in sequences.items()
    }


def cut(
    sequencer: Stage, fingerprints: Sequence[Record], topology: Topology, other: Topology
) -> list[Record]:
    """Give the records of ``bands`` that the run would have had with other shards."""
    offsets = [count() for _ in range(other.shards)]
    bands = []
    for record in fingerprints:
        frame = decode(FingerprintFrame, record.value, topology.layout)
        frame = msgspec.structs.replace(frame, layout=other.layout)
        burst = sequencer.process([record._replace(value=encode(frame))])
        assert burst is not None
        for part in burst.records:
            assert part.partition is not None
            offset = next(offsets[part.partition])
            bands.append(Record(part.topic, part.partition, offset, -1, None, part.value))
    return bands


def _whole_log(partition: TopicPartition) -> tuple[int, int]:
    del partition
    return 0, 1 << 60


def _bursts(bands: list[Record], most: int) -> Iterator[list[Record]]:
    """Cut anywhere; within a burst, as from a poll, partitions take turns."""
    seed = Random(len(bands))
    first = 0
    while first < len(bands):
        size = seed.randint(1, most)
        yield bands[first : first + size]
        first += size


def _take(frame: MatchFrame, sequences: dict[Source, int], matches: Matches) -> None:
    if frame.shard == 0:
        base = (frame.number << POSITION_BITS) + frame.first
        for position, offset in enumerate(np.frombuffer(frame.offsets, U32).tolist()):
            sequences[frame.partition, frame.start + offset] = base + position
    known = list(zip(np.frombuffer(frame.sequences, U64).tolist(), frame.ids.unpack(), strict=True))
    found = zip(
        np.frombuffer(frame.which, U16).tolist(),
        np.frombuffer(frame.similarities, F32).tolist(),
        strict=True,
    )
    counts = np.frombuffer(frame.counts, U16).tolist()
    for offset, own in zip(np.frombuffer(frame.matched, U32).tolist(), counts, strict=True):
        of_document = matches.setdefault((frame.partition, frame.start + offset), {})
        for _ in range(own):
            place, similarity = next(found)
            sequence, ident = known[place]
            of_document[sequence] = similarity, ident.decode()


def _best(matches: dict[int, tuple[float, str]], limit: int) -> tuple[tuple[str, float], ...]:
    ranked = sorted(matches.items(), key=lambda item: (-item[1][0], item[0]))
    return tuple((ident, round(similarity, 4)) for _, (similarity, ident) in ranked[:limit])
