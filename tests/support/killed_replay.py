"""A feed's frames, judged by workers that are killed again and again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final, cast

from tests.support.checker.history import Source, Verdict
from tests.support.killed_disk import left_by_kill, settle
from tests.support.replay import Answers, stamped, with_shards
from tests.support.stages import process
from worker.app import Application
from worker.bus import Record, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.index.store import BandStore
from worker.offline.embedded import create_topics
from worker.settings.model import Settings
from worker.stages.index import Index
from worker.topology import Topology
from worker.wire.codec import decode
from worker.wire.matches import MatchFrame

KILLED: Final = 0.12
MOST_KILLS: Final = 20
ABORTED: Final = 0.03
BURSTS: Final = (1, 3, 12)


class KilledReplay:
    """Judges frames with P = ``shards``, in bursts that end in commits, aborts and kills.

    kills: how many there were. replayed: how many frames were read again.
    """

    def __init__(
        self,
        fingerprints: Sequence[Record],
        settings: Settings,
        topology: Topology,
        shards: int,
        directory: Path,
        chance: Random,
    ) -> None:
        """Take what `tests.support.replay.replay` takes, and what chance draws from."""
        self._settings = settings
        self._topology = with_shards(topology, shards)
        self._frames = stamped(fingerprints, topology, self._topology)
        self._directory = directory
        self._chance = chance
        seats = [TopicPartition(self._topology.seats, shard) for shard in range(shards)]
        self._committed = dict.fromkeys(seats, 0)
        self._positions = dict(self._committed)
        self.kills = self.replayed = 0

    def verdicts(self) -> dict[Source, Verdict]:
        """Judge everything."""
        answers = Answers(self._settings.index.max_matches)
        index = self._started()
        while min(self._committed.values()) < len(self._frames):
            burst, reached = self._burst()
            produced = process(index, burst)
            if self._chance.random() < ABORTED:
                self._positions = dict(index.adopt(self._committed, self._range))
                continue
            for outgoing in produced.records:
                answers.take(decode(MatchFrame, outgoing.value, self._topology.layout.id))
            self._committed |= produced.offsets
            index = self._ended(index, reached)
        index.close()
        return answers.verdicts()

    def _ended(
        self, index: Index[BandStore], reached: dict[TopicPartition, int]
    ) -> Index[BandStore]:
        """Go on after a commit, or kill the worker before or after it has written its state."""
        killed = self.kills < MOST_KILLS and self._chance.random() < KILLED
        if not killed or self._chance.random() < 0.5:
            index.committed()
            index.idle()
            self._positions = reached
        return self._killed(index) if killed else index

    def _killed(self, index: Index[BandStore]) -> Index[BandStore]:
        settle(index.stores().values())
        before = self._state
        self.kills += 1
        left_by_kill(before, self._state)
        index.close()
        made = self._started()
        self.replayed += sum(self._committed[seat] - at for seat, at in self._positions.items())
        return made

    @property
    def _state(self) -> Path:
        return self._directory / f"state-{self.kills}"

    def _started(self) -> Index[BandStore]:
        bus = MemoryBus()
        create_topics(bus, self._topology)
        application = Application(self._settings, self._topology, bus, self._state)
        index = cast("Index[BandStore]", application.stage("index"))
        self._positions = dict(index.adopt(self._committed, self._range))
        return index

    def _range(self, seat: TopicPartition) -> tuple[int, int]:
        del seat
        return 0, len(self._frames)

    def _burst(self) -> tuple[list[Record], dict[TopicPartition, int]]:
        burst: list[Record] = []
        reached: dict[TopicPartition, int] = {}
        for seat, first in self._positions.items():
            size = self._chance.randint(0, self._chance.choice(BURSTS))
            some = self._frames[first : first + size]
            reached[seat] = first + len(some)
            burst += [one._replace(topic=seat.topic, partition=seat.partition) for one in some]
        return burst, reached
