"""Workers on one log, stepped one at a time by hand, struck at any point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count, cycle
from pathlib import Path
from time import monotonic
from typing import ClassVar, Final, NamedTuple

from tests.support.brokers import Brokers
from tests.support.checker.history import History
from tests.support.killed_disk import left_by_kill, settle
from tests.support.life import Death, Life
from tests.support.points import DONE, Fault, Strike
from tests.world.archive import Archive
from tests.world.clock import Clock
from tests.world.measures import Measures
from tests.world.nemesis import Nemesis
from tests.world.writer import Writer
from worker.bus import Aborted, BusError, Fenced, OutcomeUnknown, Record, TopicPartition
from worker.bus.memory.transaction import Step
from worker.corrections.request import Request
from worker.generations.plan import Plan
from worker.offline.embedded import create_topics
from worker.stages.base import StageError
from worker.topology import STAGES, Topology

AWAKE_ROUNDS: Final = 4
"""What the others get done while one is asleep or away."""
FINISH_SECONDS: Final = 60.0
IDLE_SECONDS: Final = 5.0
"""With nothing to do for so long, and documents unpublished, a run is stuck."""


class Died(BaseException):
    """The process is gone: no product code may catch this."""


class Ending(NamedTuple):
    """How a worker came not to run: a check that refused its start, or an error."""

    worker: str
    what: str
    excused: bool
    """It had slept past its session's end, and its view was an old one; or records were lost."""


def _kept(fault: Fault) -> Callable[[TopicPartition | None], bool]:
    """Return which partitions keep what a torn transaction wrote; None stands for the offsets."""
    every_other = cycle((True, False))
    if fault == "torn, every other":
        return lambda _place: next(every_other)
    return lambda place: (place is None) == (fault == "torn, only offsets")


def _none(life: Life) -> None:
    """Make no mistake."""


class World:
    """An application, its workers by name, and an archive that reads along after every step.

    Everything happens in the thread that calls, one step at a time. A worker that dies, or gives
    up, is started again at once, as by a supervisor.

    Attributes:
        lives: the workers that run, by name.
        ghosts: those that were superseded, and don't know it yet.
        known: the disks of all that ever ran, or were to.
        endings: why workers ended that were not told to.
        mistake: is made in every worker, when it starts; none unless a test sets one.
        clock: what the workers measure intervals with.
        dates: what records are stamped with. This time stands still: runs that are struck have
            equal logs then, and one replay serves them all.
    """

    STEP_MS: ClassVar = 300
    """What a step takes by the workers' clock, so that what is due every second has its turns."""

    def __init__(self, directory: Path, measures: Measures | None = None) -> None:
        """Make topics and offsets; nobody runs yet."""
        self.measures = measures = measures or Measures()
        self.settings = measures.settings(directory)
        self.topology = self.settings.topology(measures.partitions)
        self.clock = Clock()
        self.dates = self._calendar()
        self.bus = self._bus()
        create_topics(self.bus, self.topology)
        self.archive = Archive(self.bus, self.topology)
        self.writer = Writer(self.bus, self.topology, self.dates)
        self.nemesis = Nemesis(self.befall)
        self.lives: dict[str, Life] = {}
        self.ghosts: list[Life] = []
        self.known: dict[str, Path] = {}
        self.endings: list[Ending] = []
        self.mistake: Callable[[Life], None] = _none
        self._acting: list[Life] = []
        self._group = ""
        self._directory = directory
        self._disks = count()

    def _calendar(self) -> Clock:
        return Clock()

    def _bus(self) -> Brokers:
        return Brokers(clock=self.dates.milliseconds, faults=self._on_transaction)

    @property
    def inputs(self) -> list[Record]:
        """Give all documents that committed readers may see, in the order of writing."""
        return self.writer.written

    def plan(self) -> Plan:
        """Give the generations of the index that workers are to run."""
        return Plan.of(self.settings)

    def topologies(self) -> list[Topology]:
        """Give the topologies of all generations that there ever were."""
        return [self.topology]

    # What happens to documents and workers.

    def feed(self, texts: Iterable[tuple[str, str]]) -> None:
        """Write documents, round the partitions."""
        for text in texts:
            self.writer.write([text], [self._turn()])

    def correct(self, request: Request) -> None:
        """Write what a person corrects to the partition whose turn it is."""
        self.writer.correct(request, self._turn())

    def forget(self, ident: str, *, delete: bool = False) -> None:
        """Write a tombstone, or a delete with a value, to the partition whose turn it is."""
        self.writer.forget(ident, self._turn(), with_value=delete)

    def _turn(self) -> int:
        return len(self.inputs) % self.topology.layout.partitions

    def start(self, name: str, disk: Path | None = None) -> bool:
        """Start a worker that doesn't run, on this disk, its last one, or an empty one.

        Return whether it runs.
        """
        if name in self.lives:
            return True
        disk = self.known[name] = disk or self.known.get(name) or self._new_disk()
        if not self._may_start(name):
            return False
        self.lives[name] = life = Life(
            name,
            self.settings,
            self.topology,
            self.bus,
            disk,
            self.nemesis.arrive,
            self.clock.seconds,
            self.plan(),
        )
        self.mistake(life)
        return True

    def _may_start(self, name: str) -> bool:
        """Tell whether the checks of a start pass, and note an ending if not."""
        del name
        return True

    def leave(self, name: str) -> None:
        """Let a worker end well, and for good; should it come back, it has its disk."""
        if name in self.lives:
            life = self.lives[name]
            with self._fate_of(life):
                self._end_well(life, leave=True)

    def restart(self, name: str) -> None:
        """Let a worker end well, and start it on its disk."""
        if name in self.lives:
            life = self.lives[name]
            with self._fate_of(life):
                self._end_well(life, leave=False)
                self.start(name)

    def _end_well(self, life: Life, *, leave: bool) -> None:
        for loop in life.loops.values():
            loop.close(leave=leave)
        life.over = True
        self._bury(life)

    def arm(self, strike: Strike) -> None:
        """Have a fault befall a worker in the midst of a step."""
        self.nemesis.arm(strike)

    def suffer(self, name: str, fault: Fault) -> None:
        """Let a fault befall a worker between two steps."""
        if name in self.lives:
            life = self.lives[name]
            with self._fate_of(life):
                self.befall(life, fault)

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

    def hurry(self, name: str, stages: Sequence[str], steps: int) -> None:
        """Let some stages of a worker take so many steps; all else has to wait."""
        for _ in range(steps):
            for stage in stages:
                if name in self.lives:
                    self.step(self.lives[name], stage)

    def step(self, life: Life, stage: str) -> bool:
        """Give one stage of a worker a step, if it is awake; tell if there was work."""
        loop = life.loops.get(stage)
        if loop is None or life.asleep or life.over:
            return False
        fenced = life.superseded
        self.clock.move(self.STEP_MS)
        with self._fate_of(life):
            try:
                loop.step(0.0)
                assert not fenced, f"{stage} of {life.name} was superseded, and not fenced"
            except (StageError, BusError) as error:
                if isinstance(error, Fenced) and life.superseded:
                    self._lay(life, stage)
                elif not self._gives_up(life, stage, error):
                    raise
        self.archive.look()
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
            and owned == set(range(self.plan().current.shards))
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
        return self.archive.history(self.inputs)

    # Strikes.

    def _on_transaction(self, step: Step, group: str, instance: str) -> None:
        if not group:
            return  # Who writes documents has none.
        generation, _, stage = group.removeprefix(f"{self.topology.app}.").rpartition(".")
        stage = f"{stage}-{generation}" if generation else stage
        life = self._acting[-1]
        assert life.name == instance
        name = step if step != "committed" else "commit" + DONE
        self._group = group
        life.tell(stage, name)

    def befall(self, life: Life, fault: Fault) -> None:
        """Let a fault befall a worker in the midst of a step; may raise."""
        if fault == "aborted":
            raise Aborted("struck")
        if fault == "unknown":
            raise OutcomeUnknown("struck")
        if fault.startswith("torn"):
            self.bus.tear(self._group, life.name, _kept(fault))
            raise OutcomeUnknown("struck")
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
            self._follow(life, death)

    def _follow(self, life: Life, death: Death) -> None:
        """See to what follows the death of a worker that nobody has replaced."""
        if death.fault == "dies, away":
            self._evict(life.name)
            self.rounds(AWAKE_ROUNDS)
        self.start(life.name, death.disk)

    def _lay(self, ghost: Life, stage: str) -> None:
        """Let a fenced loop end, as its process would."""
        ghost.loops.pop(stage).stage.close()
        if not ghost.loops:
            self._bury(ghost)

    def _gives_up(self, life: Life, stage: str, error: Exception) -> bool:
        """Let a worker end by an error, if it is one that it may end by; tell if it is."""
        if not (life.stalled and isinstance(error, StageError)):
            return False
        self.endings.append(Ending(life.name, f"{stage}: {error}", excused=True))
        self._bury(life)
        if not life.superseded:
            self.start(life.name, life.disk)
        return True

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
