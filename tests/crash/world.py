"""Workers on one log, stepped one at a time by hand, struck at any point."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Final

from tests.crash.disk import left_by_kill, settle
from tests.crash.life import Death, Life
from tests.crash.points import Fault, Point, Strike
from tests.integration.checker import History, Sighting, frame_ranges, sightings
from worker.bus.memory import MemoryBus, Step
from worker.bus.port import Aborted, Fenced, OutcomeUnknown, Outgoing, Record, TopicPartition
from worker.embedded import create_topics
from worker.settings import Settings
from worker.topology import STAGES, Topology

__all__ = ["Died", "World"]

NOW: Final = 1_700_000_000_000
AWAKE_ROUNDS: Final = 4
"""What the others get done while one is asleep or away."""
FINISH_SECONDS: Final = 60.0
IDLE_SECONDS: Final = 5.0
"""With nothing to do for so long, and documents unpublished, a run is stuck."""


class Died(BaseException):
    """The process is gone: no product code may catch this."""


def _none(life: Life, bus: MemoryBus) -> None:
    """Make no mistake."""


@cache
def _settings(shards: int, batch: int) -> Settings:
    return Settings.model_validate(
        {
            "index": {
                "shards": shards,
                "cache_bytes": 1 << 20,
                "bucket_capacity": 3,
                "flush_documents": 3 * batch,
            },
            "worker": {"batch_records": batch},
        }
    )


@dataclass(slots=True)
class _Armed:
    """A strike, and how many arrivals it still lets pass; at 0 it is due."""

    strike: Strike
    left: int

    def comes_to(self, point: Point) -> bool:
        """Count an arrival; tell whether the strike is due."""
        self.left -= point == self.strike.point
        return self.left <= 0


class World:
    """An application, its workers by name, and an auditor who reads after every step.

    Attributes:
        trace: every point that anybody came to, in order.
        struck: the strikes that have been dealt.
        mistake: is made in every worker, when it starts; none unless a test sets one.
    """

    def __init__(
        self, directory: Path, *, partitions: int = 2, shards: int = 2, batch: int = 4
    ) -> None:
        """Make topics and offsets; nobody runs yet."""
        self.settings = _settings(shards, batch)
        self.topology = Topology.of(self.settings, partitions)
        self.bus = MemoryBus(clock=lambda: NOW, faults=self._on_transaction)
        create_topics(self.bus, self.topology)
        self.lives: dict[str, Life] = {}
        self.ghosts: list[Life] = []
        self.inputs: list[Record] = []
        self.seen: dict[str, list[Sighting]] = {"unique": [], "duplicate": [], "rejected": []}
        self.trace: list[Point] = []
        self.struck: list[Strike] = []
        self.mistake: Callable[[Life, MemoryBus], None] = _none
        self._armed: list[_Armed] = []
        self._acting: list[Life] = []
        self._positions: dict[TopicPartition, int] = defaultdict(int)
        self._directory = directory
        self._disks = count()

    # What happens to documents and workers.

    def feed(self, texts: Iterable[tuple[str, str]]) -> None:
        """Write documents, round the partitions."""
        for ident, text in texts:
            value = json.dumps({"id": ident, "text": text}).encode()
            partition = len(self.inputs) % self.topology.partitions
            record = Outgoing(self.topology.documents, partition, None, value)
            (topic, _), offset = self.bus.append(record)
            self.inputs.append(Record(topic, partition, offset, NOW, None, value))

    def start(self, name: str, disk: Path | None = None) -> None:
        """Start a worker that doesn't run, on a disk that is left, or an empty one."""
        if name not in self.lives:
            self.lives[name] = life = Life(
                name,
                self.settings,
                self.topology,
                self.bus,
                disk or self._new_disk(),
                self._arrive,
            )
            self.mistake(life, self.bus)

    def leave(self, name: str) -> None:
        """Let a worker end well, and for good; its disk is forgotten."""
        if name not in self.lives:
            return
        life = self.lives[name]
        with self._fate_of(life):
            for loop in life.loops.values():
                loop.close(leave=True)
            life.over = True
            self._bury(life)

    def restart(self, name: str) -> None:
        """Let a worker end well, and start it on its disk."""
        if name not in self.lives:
            return
        life = self.lives[name]
        with self._fate_of(life):
            for loop in life.loops.values():
                loop.close()
            life.over = True
            self._bury(life)
            self.start(name, life.disk)

    def suffer(self, name: str, fault: Fault) -> None:
        """Let a fault befall a worker between two steps."""
        if name in self.lives:
            life = self.lives[name]
            with self._fate_of(life):
                self._befall(life, fault)

    def arm(self, strike: Strike) -> None:
        """Have a fault dealt."""
        self._armed.append(_Armed(strike, strike.nth))

    # Time goes on.

    def rounds(self, number: int) -> bool:
        """Give every stage of all workers a step, so many times; tell if any had work."""
        busy = False
        for _ in range(number):
            for life in [*self.lives.values(), *self.ghosts]:
                for stage in STAGES:
                    busy |= self.step(life, stage)
        return busy

    def step(self, life: Life, stage: str) -> bool:
        """Give one stage of a worker a step, if it is awake; tell if there was work."""
        loop = life.loops.get(stage)
        if loop is None or life.asleep or life.over:
            return False
        fenced = life.superseded
        with self._fate_of(life):
            try:
                loop.step(0.0)
                assert not fenced, f"{stage} of {life.name} was superseded, and not fenced"
            except Fenced:
                assert life.superseded, f"{stage} of {life.name} was fenced by nobody"
                self._lay(life, stage)
        self._audit()
        return loop.busy

    def finish(self, idle_seconds: float = IDLE_SECONDS) -> None:
        """Go on until every document is published, and every shard has read all.

        Raises:
            TimeoutError: that doesn't come about.
        """
        deadline = monotonic() + FINISH_SECONDS
        idle_since = monotonic()
        while (busy := self.rounds(1)) or self.ghosts or not self.drained():
            if busy:
                idle_since = monotonic()
            if monotonic() > min(deadline, idle_since + idle_seconds):
                raise TimeoutError(f"stuck: {self.positions()}")

    def drained(self) -> bool:
        """Tell whether *route* has come to the end of the documents, the shards to theirs."""
        ends = {
            TopicPartition(self.topology.documents, number): self.bus.end_offset(
                self.topology.documents, number
            )
            for number in range(self.topology.partitions)
        }
        routed = self.bus.committed(self.topology.group("route"), ends)
        owned = {shard for life in self.lives.values() for shard in life.index.stores()}
        return (
            routed == ends
            and owned == set(range(self.topology.shards))
            and not any(life.index.restoring() for life in self.lives.values())
        )

    def positions(self) -> dict[str, dict[TopicPartition, int | None]]:
        """Give every group's committed offsets."""
        return {stage: self.bus.committed(self.topology.group(stage)) for stage in STAGES}

    def close(self) -> None:
        """Let everybody go."""
        for life in [*self.lives.values(), *self.ghosts]:
            life.end()

    # What came of it.

    def history(self) -> History:
        """Give what went in, what came out, and what was seen meanwhile."""
        topology = self.topology
        return History(
            self.inputs,
            self.read(topology.unique),
            self.read(topology.duplicate),
            self.read(topology.rejected),
            seen=self.seen,
            frames=frame_ranges(self.read(topology.fingerprints), topology.layout),
            parameters=topology.parameters,
        )

    def read(self, topic: str, first: int = 0, last: int | None = None) -> list[Record]:
        """Give the committed records of a topic's partitions."""
        after = (self.bus.partitions([topic])[topic] or 0) if last is None else last + 1
        return [r for n in range(first, after) for r in self.bus.read(topic, n, 0, 1 << 30)]

    def _audit(self) -> None:
        topology = self.topology
        for kind in self.seen:
            topic = getattr(topology, kind)
            for number in range(topology.partitions):
                place = TopicPartition(topic, number)
                records = self.bus.read(topic, number, self._positions[place], 1 << 30)
                if records:
                    self._positions[place] = records[-1].offset + 1
                    self.seen[kind] += sightings(records)

    # Strikes.

    def _on_transaction(self, step: Step, group: str, instance: str) -> None:
        stage = group.rpartition(".")[2]
        life = self._acting[-1]
        assert life.name == instance
        name = step if step != "committed" else "commit done"
        life.tell(stage, name)

    def _arrive(self, life: Life, stage: str, name: str) -> None:
        point = Point(life.name, stage, name)
        self.trace.append(point)
        due = [armed for armed in self._armed if armed.comes_to(point)]
        for armed in due[:1]:
            self._armed.remove(armed)
            self.struck.append(armed.strike)
            if armed.strike.then is not None:
                self.arm(armed.strike.then)
            self._befall(life, armed.strike.fault)

    def _befall(self, life: Life, fault: Fault) -> None:
        if fault == "aborted":
            raise Aborted("struck")
        if fault == "unknown":
            raise OutcomeUnknown("struck")
        if fault in {"dies", "dies, disk lost", "dies, away"}:
            self._die(life, fault)
        life.asleep = True
        if fault == "replaced":
            life.superseded = True
            disk = self._copy(life)
            self.ghosts.append(self.lives.pop(life.name))
            self.start(life.name, disk)
        else:
            self._evict(life.name)
        self.rounds(AWAKE_ROUNDS)
        life.asleep = False

    def _die(self, life: Life, fault: Fault) -> None:
        disk = self._new_disk() if fault == "dies, disk lost" else self._copy(life)
        life.over, life.death = True, Death(fault, disk)
        raise Died

    def _evict(self, name: str) -> None:
        for stage in STAGES:
            self.bus.evict(self.topology.group(stage), name)

    @contextmanager
    def _fate_of(self, life: Life) -> Iterator[None]:
        """See to it that who dies here is buried, and comes back."""
        depth = len(self._acting)
        self._acting.append(life)
        try:
            with suppress(Died):
                yield
        finally:
            del self._acting[depth:]
        # A stage may carry an error from where it arose to its next step: so not by `Died`.
        death, life.death = life.death, None
        if death is None:
            return
        self._bury(life)
        if not life.superseded:
            if death.fault == "dies, away":
                self._evict(life.name)
                self.rounds(AWAKE_ROUNDS)
            self.start(life.name, death.disk)

    def _lay(self, ghost: Life, stage: str) -> None:
        """Let a fenced loop end, as its process would."""
        ghost.loops.pop(stage).stage.close()
        if not ghost.loops:
            self._bury(ghost)

    def _bury(self, life: Life) -> None:
        life.end()
        if self.lives.get(life.name) is life:
            del self.lives[life.name]
        if life in self.ghosts:
            self.ghosts.remove(life)

    def _copy(self, life: Life) -> Path:
        if "index" in life.loops:
            settle(life.index.stores().values())
        disk = self._new_disk()
        left_by_kill(life.disk, disk)
        return disk

    def _new_disk(self) -> Path:
        return self._directory / f"disk-{next(self._disks)}"
