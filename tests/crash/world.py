"""Workers on one log, stepped one at a time by hand, struck at any point."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, cycle
from pathlib import Path
from time import monotonic
from typing import Final

from tests.crash.auditor import Auditor
from tests.crash.measures import Measures
from tests.crash.nemesis import Nemesis
from tests.support.checker import History
from tests.support.killed_disk import left_by_kill, settle
from tests.support.life import Death, Life
from tests.support.points import DONE, Fault
from worker.bus.memory import MemoryBus, Step, Torn
from worker.bus.port import (
    Aborted,
    Fenced,
    OutcomeUnknown,
    Outgoing,
    Record,
    TopicPartition,
)
from worker.generations.plan import Plan
from worker.offline.embedded import create_topics
from worker.stages import StageError
from worker.topology import STAGES, Topology

__all__ = ["Died", "World"]

NOW: Final = 1_700_000_000_000
AWAKE_ROUNDS: Final = 4
"""What the others get done while one is asleep or away."""
STEP_SECONDS: Final = 0.3
"""What a step takes by the workers' clocks, so that what is due every second has its turns."""
FINISH_SECONDS: Final = 60.0
IDLE_SECONDS: Final = 5.0
"""With nothing to do for so long, and documents unpublished, a run is stuck."""


class Died(BaseException):
    """The process is gone: no product code may catch this."""


def _kept(fault: Fault) -> Callable[[TopicPartition | None], bool]:
    """Return which partitions keep what a torn transaction wrote; None stands for the offsets."""
    every_other = cycle((True, False))
    if fault == "torn, every other":
        return lambda _place: next(every_other)
    return lambda place: (place is None) == (fault == "torn, only offsets")


def _none(life: Life) -> None:
    """Make no mistake."""


class World:
    """An application, its workers by name, and an auditor who reads after every step.

    Attributes:
        lives: the workers that run, by name.
        ghosts: those that were superseded, and don't know it yet.
        given_up: what stages said that ended their workers, after a stall had left them
            with an old view of the log; a supervisor then starts the worker again.
        mistake: is made in every worker, when it starts; none unless a test sets one.
    """

    def __init__(self, directory: Path, measures: Measures | None = None) -> None:
        """Make topics and offsets; nobody runs yet."""
        measures = measures or Measures()
        self.settings = measures.settings(directory)
        self.topology = self.settings.topology(measures.partitions)
        self.bus = MemoryBus(clock=lambda: NOW, faults=self._on_transaction)
        create_topics(self.bus, self.topology)
        self.lives: dict[str, Life] = {}
        self.ghosts: list[Life] = []
        self.given_up: list[str] = []
        self.inputs: list[Record] = []
        self.auditor = Auditor(self.bus, self.topology)
        self.nemesis = Nemesis(self._befall)
        self.mistake: Callable[[Life], None] = _none
        self._acting: list[Life] = []
        self._left: dict[str, Path] = {}
        self._now = 0.0
        self._directory = directory
        self._disks = count()

    def plan(self) -> Plan:
        """Give the generations of the index that workers are to run."""
        return Plan.of(self.settings)

    def topologies(self) -> list[Topology]:
        """Give the topologies of all generations that there ever were."""
        return [self.topology]

    # What happens to documents and workers.

    def feed(self, texts: Iterable[tuple[str, str]]) -> None:
        """Write documents, round the partitions."""
        for ident, text in texts:
            self._write(None, json.dumps({"id": ident, "text": text}).encode())

    def forget(self, ident: str, *, delete: bool = False) -> None:
        """Write a tombstone, or a delete with a value, to the partition whose turn it is."""
        value = json.dumps({"id": ident, "text": None}).encode() if delete else None
        self._write(ident.encode(), value)

    def _write(self, key: bytes | None, value: bytes | None) -> None:
        partition = len(self.inputs) % self.topology.layout.partitions
        record = Outgoing(self.topology.documents, partition, key, value)
        (topic, _), offset = self.bus.append(record)
        self.inputs.append(Record(topic, partition, offset, NOW, key, value))

    def start(self, name: str, disk: Path | None = None) -> None:
        """Start a worker that doesn't run: on this disk, one that it left, or an empty one."""
        if name not in self.lives:
            disk = disk or self._left.pop(name, None) or self._new_disk()
            self.lives[name] = life = Life(
                name,
                self.settings,
                self.topology,
                self.bus,
                disk,
                self.nemesis.arrive,
                lambda: self._now,
                self.plan(),
            )
            self.mistake(life)

    def leave(self, name: str) -> None:
        """Let a worker end well, and for good; should it come back, it has its disk."""
        if name not in self.lives:
            return
        life = self.lives[name]
        with self._fate_of(life):
            for loop in life.loops.values():
                loop.close(leave=True)
            life.over = True
            self._left[name] = life.disk
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

    def flush(self, name: str) -> None:
        """Let a worker flush all of its stores."""
        if name in self.lives:
            life = self.lives[name]
            with self._fate_of(life):
                for store in life.index.stores().values():
                    store.flush()

    # Time goes on.

    def rounds(self, number: int) -> bool:
        """Give every stage of all workers a step, so many times; tell if any had work."""
        busy = False
        for _ in range(number):
            for life in [*self.lives.values(), *self.ghosts]:
                for part in list(life.loops):
                    busy |= self.step(life, part)
        return busy

    def step(self, life: Life, stage: str) -> bool:
        """Give one stage of a worker a step, if it is awake; tell if there was work."""
        loop = life.loops.get(stage)
        if loop is None or life.asleep or life.over:
            return False
        fenced = life.superseded
        self._now += STEP_SECONDS
        with self._fate_of(life):
            try:
                loop.step(0.0)
                assert not fenced, f"{stage} of {life.name} was superseded, and not fenced"
            except Fenced:
                assert life.superseded, f"{stage} of {life.name} was fenced by nobody"
                self._lay(life, stage)
            except StageError as error:
                if not life.stalled:
                    raise
                self._give_up(life, str(error))
        self.auditor.look()
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
            for number in range(self.topology.layout.partitions)
        }
        routed = self.bus.committed(self.topology.group("route"), ends)
        owned = {shard for life in self.lives.values() for shard in life.index.stores()}
        return (
            routed == ends
            and owned == set(range(self.topology.layout.shards))
            and not any(life.index.status().restoring for life in self.lives.values())
        )

    def positions(self) -> dict[str, dict[TopicPartition, int | None]]:
        """Give every group's committed offsets."""
        return {stage: self.bus.committed(self.topology.group(stage)) for stage in STAGES}

    def close(self) -> None:
        """Let everybody go."""
        for life in [*self.lives.values(), *self.ghosts]:
            life.end()

    def history(self) -> History:
        """Give what went in, what came out, and what was seen meanwhile."""
        return self.auditor.history(self.inputs)

    # Strikes.

    def _on_transaction(self, step: Step, group: str, instance: str) -> None:
        generation, _, stage = group.removeprefix(f"{self.topology.app}.").rpartition(".")
        stage = f"{stage}-{generation}" if generation else stage
        life = self._acting[-1]
        assert life.name == instance
        name = step if step != "committed" else "commit" + DONE
        life.tell(stage, name)

    def _befall(self, life: Life, fault: Fault) -> None:
        if fault == "aborted":
            raise Aborted("struck")
        if fault == "unknown":
            raise OutcomeUnknown("struck")
        if fault.startswith("torn"):
            raise Torn(_kept(fault), OutcomeUnknown("struck"))
        if fault in {"dies", "dies, disk lost", "dies, away"}:
            self._die(life, fault)
        if life.superseded:
            return
        life.asleep = life.stalled = True
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
        stages = (*STAGES, "refingerprint")
        groups = {one.group(stage) for one in self.topologies() for stage in stages}
        for group in sorted(groups):
            self.bus.evict(group, name)

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

    def _give_up(self, life: Life, why: str) -> None:
        self.given_up.append(why)
        self._bury(life)
        if not life.superseded:
            self.start(life.name, life.disk)

    def _bury(self, life: Life) -> None:
        life.end()
        if self.lives.get(life.name) is life:
            del self.lives[life.name]
        if life in self.ghosts:
            self.ghosts.remove(life)

    def _copy(self, life: Life) -> Path:
        settle(life.opened)
        disk = self._new_disk()
        left_by_kill(life.disk, disk)
        return disk

    def _new_disk(self) -> Path:
        return self._directory / f"disk-{next(self._disks)}"
