"""A run's own sequence, judged again by one shard, or many.

The stages are pure, so the replay needs no log: *index* is handed the very records of the
run's ``fingerprints``, with their offsets and times, of which sequence numbers and "now" are
made. So whole verdicts can be compared, sequence numbers included. Only the layout, which names
P, is stamped anew. What *route* does, the joining of answers with documents, is left out, and
done here in other words: group, sort, cut.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec

from tests.support.checker.history import Source, Verdict
from tests.support.stages import process
from worker.app import Application
from worker.bus import Record, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.offline.embedded import create_topics
from worker.settings.model import Settings
from worker.topology import Topology
from worker.wire.codec import decode, encode
from worker.wire.corrections import ALLOWED
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.frame import POSITION_BITS, Layout
from worker.wire.matches import MatchFrame

Found = tuple[float, str, float | None]
"""The similarity to a document, its id, and the containment in it."""
Matches = dict[Source, dict[int, Found]]


class Answers:
    """What shards have answered; the verdicts that come of it."""

    def __init__(self, limit: int) -> None:
        """Take how many matches are published of a document at most."""
        self._limit = limit
        self._sequences: dict[Source, int] = {}
        self._matches: Matches = {}

    def take(self, frame: MatchFrame) -> None:
        """Take an answer. One that is given again takes the place of the first."""
        _take(frame, self._sequences, self._matches)

    def verdicts(self) -> dict[Source, Verdict]:
        """Return the verdicts."""
        return {
            at: _verdict(sequence, self._matches.get(at, {}), self._limit)
            for at, sequence in self._sequences.items()
        }


def replay(
    fingerprints: Sequence[Record],
    settings: Settings,
    topology: Topology,
    shards: int,
    directory: Path,
) -> dict[Source, Verdict]:
    """Judge a run's frames in their order, with P = ``shards``, in bursts of any size."""
    other = with_shards(topology, shards)
    bus = MemoryBus()
    create_topics(bus, other)
    application = Application(settings, other, bus, directory / f"replay-{shards}")
    frames = stamped(fingerprints, topology, other)
    answers = Answers(settings.index.max_matches)
    index = application.stage("index")
    index.adopt({TopicPartition(other.seats, n): 0 for n in range(shards)}, _whole_log)
    try:
        for burst in _bursts(frames, 60, other):
            produced = process(index, burst)
            for outgoing in produced.records:
                answers.take(decode(MatchFrame, outgoing.value, other.layout.id))
            index.committed()
    finally:
        index.close()
    return answers.verdicts()


def with_shards(topology: Topology, shards: int) -> Topology:
    """Return the names of the same application with another number of shards."""
    layout = topology.layout
    own = Layout.of(topology.app, layout.partitions, shards, layout.parameters)
    return replace(topology, layout=replace(own, numbered_from=layout.numbered_from))


def stamped(fingerprints: Sequence[Record], topology: Topology, other: Topology) -> list[Record]:
    """Return frames as the run would have written them with other shards."""
    frames = []
    for record in fingerprints:
        frame = decode(FingerprintFrame, record.value, topology.layout.id)
        value = encode(msgspec.structs.replace(frame, layout=other.layout.id))
        frames.append(record._replace(value=value))
    return frames


def _whole_log(partition: TopicPartition) -> tuple[int, int]:
    del partition
    return 0, 1 << 60


def _bursts(frames: list[Record], most: int, other: Topology) -> Iterator[list[Record]]:
    """Cut anywhere, for each shard elsewhere."""
    seed = Random(len(frames))
    seats = [TopicPartition(other.seats, shard) for shard in range(other.layout.shards)]
    following = dict.fromkeys(seats, 0)
    while min(following.values()) < len(frames):
        burst = []
        for seat, first in following.items():
            following[seat] = last = min(len(frames), first + seed.randint(0, most))
            burst += [
                record._replace(topic=seat.topic, partition=seat.partition)
                for record in frames[first:last]
            ]
        if burst:
            yield burst


def _take(frame: MatchFrame, sequences: dict[Source, int], matches: Matches) -> None:
    if frame.shard == 0:
        base = (frame.number << POSITION_BITS) + frame.first
        for position, offset in enumerate(frame.offsets.tolist()):
            sequences[frame.partition, frame.start + offset] = base + position
    known = list(zip(frame.sequences.tolist(), frame.ids.unpack(), strict=True))
    found = zip(
        frame.which.tolist(), frame.similarities.tolist(), _containments(frame), strict=True
    )
    for offset, own in zip(frame.matched.tolist(), frame.counts.tolist(), strict=True):
        of_document = matches.setdefault((frame.partition, frame.start + offset), {})
        for _ in range(own):
            place, similarity, containment = next(found)
            sequence, ident = known[place]
            of_document[sequence] = similarity, ident.decode(), containment


def _containments(frame: MatchFrame) -> list[float | None]:
    if frame.containments is None:
        return [None] * len(frame.which)
    return [share or None for share in frame.containments.tolist()]


def _verdict(sequence: int, matches: dict[int, Found], limit: int) -> Verdict:
    if ALLOWED in matches:
        return Verdict(sequence, (), allowed=matches[ALLOWED][1])
    ordered = sorted(matches.items(), key=lambda item: (-item[1][0], item[0]))
    best = [(number, found) for number, found in ordered[:limit] if found[1]]
    listed = tuple((ident, round(similarity, 4)) for _, (similarity, ident, _) in best)
    firsts = sorted((number, ident) for number, (_, ident, _) in best)
    shares = tuple(share and round(share, 4) for _, (_, _, share) in best)
    return Verdict(
        sequence,
        listed,
        firsts[0][::-1] if firsts else None,
        shares if any(share is not None for share in shares) else (),
    )
