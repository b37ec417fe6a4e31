"""An application in virtual time: workers that come and go, and a log that forgets."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from tests.world.archive import Archive
from tests.world.clock import HOUR, Clock
from tests.world.simulation.cluster import MemoryCluster
from tests.world.simulation.losses import Losses
from tests.world.measures import Measures
from tests.world.writer import Writer
from tests.support.killed_disk import left_by_kill, settle
from tests.support.life import Life
from worker.admin.checks import inspect
from worker.bus.memory import MemoryBus, Step
from worker.bus.port import BusError
from worker.offline.embedded import create_topics
from worker.stages import StageError
from worker.topology import STAGES

__all__ = ["Ending", "World"]

STEP_MS: Final = 100
"""What a step takes."""
SESSION_MS: Final = 60_000
"""After so long without a step, a worker's seats are given up."""
LOOK_HOURS: Final = 6
"""How often, while time passes, brokers delete and workers work."""
QUIET_ROUNDS: Final = 8
MOST_ROUNDS: Final = 600


class _Killed(BaseException):
    """The process is gone: no product code may catch this."""


class Ending(NamedTuple):
    """How a worker came not to run: a check that refused its start, or an error."""

    worker: str
    what: str
    excused: bool
    """Something was lost, or it had slept past its session's end, and its view was an old one."""


class World:
    """One application. Everything happens in the thread that calls, one step at a time.

    Attributes:
        lives: the workers that run, by name.
        endings: why workers ended that were not told to.
        known: the disks of all that ever ran, or were to.
    """

    def __init__(self, directory: Path, measures: Measures | None = None) -> None:
        """Make topics and offsets; nobody runs yet."""
        measures = measures or Measures()
        self.measures = measures
        self.settings = measures.settings(directory)
        self.topology = self.settings.topology(measures.partitions)
        self.clock = Clock()
        keep = measures.keep
        self.bus = MemoryBus(
            clock=self.clock.milliseconds,
            offsets_retention_ms=None if keep.offsets is None else keep.offsets * HOUR,
            faults=self._on_transaction,
        )
        create_topics(self.bus, self.topology)
        keep.apply(self.bus, self.topology)
        self.archive = Archive(self.bus, self.topology)
        self.losses = Losses(self.bus, self.topology, self.archive)
        self.writer = Writer(self.bus, self.topology, self.clock)
        self.lives: dict[str, Life] = {}
        self.endings: list[Ending] = []
        self.known: dict[str, Path] = {}
        self._seen: dict[str, int] = {}
        self._doomed: tuple[str, str] | None = None
        self._committing: list[str] = []
        self._directory = directory
        self._disks = count()

    # Workers.

    def start(self, name: str) -> bool:
        """Start a worker that doesn't run, as ``neardup run`` would: only if all checks pass."""
        if name in self.lives:
            return True
        found = inspect(MemoryCluster(self.bus, self.settings, self.topology), self.settings)
        errors = [str(problem) for problem in found.problems if problem.severity == "error"]
        disk = self.known.setdefault(name, self._new_disk())
        if errors:
            self._note_ending(name, f"start refused: {errors[0]}")
            return False
        clock = self.clock.seconds
        life = Life(name, self.settings, self.topology, self.bus, disk, _ignore, clock)
        self.lives[name] = life
        self._seen[name] = self.clock.milliseconds()
        return True

    def stop(self, name: str) -> None:
        """Let a worker end well. Its seats stay until its session ends."""
        if name in self.lives:
            for loop in self.lives[name].loops.values():
                loop.finish()
                loop.close()
            self._bury(name)

    def kill(self, name: str, *, lose_disk: bool = False) -> None:
        """End a worker as SIGKILL does: what was only in memory is gone."""
        if name in self.lives:
            disk = self._new_disk()
            settle(self.lives[name].opened)
            if not lose_disk:
                left_by_kill(self.lives[name].disk, disk)
            self._bury(name)
            self.known[name] = disk

    def lose(self, name: str) -> None:
        """End a worker with its machine: nobody will start it again."""
        self.kill(name, lose_disk=True)
        self.known.pop(name, None)

    def kill_committing(self, name: str, stage: str) -> None:
        """Kill a worker the next time this stage has written all, and not committed."""
        self._doomed = (name, stage)

    def freeze(self, name: str) -> None:
        """Let a worker take no steps; past its session's end, the others take over."""
        if name in self.lives:
            self.lives[name].asleep = True

    def wake(self, name: str) -> None:
        """Let a worker go on."""
        if name in self.lives:
            self.lives[name].asleep = False

    # Time.

    def pass_hours(self, hours: int) -> None:
        """Let time pass: sessions end, whoever runs works off what there is, brokers delete."""
        end = self.clock.milliseconds() + hours * HOUR
        while (left := end - self.clock.milliseconds()) > 0:
            until = self.clock.milliseconds() + min(left, LOOK_HOURS * HOUR)
            self.clock.move(SESSION_MS + 1)
            self.quiet()
            self.clock.move(max(0, until - self.clock.milliseconds()))
            self.losses.pass_time(awake=any(not life.asleep for life in self.lives.values()))
            self.rounds(3)

    def rounds(self, number: int) -> bool:
        """Give every stage of all workers so many steps; tell if any had work in the last."""
        busy = False
        for _ in range(number):
            self._end_sessions()
            busy = False
            for life in list(self.lives.values()):
                busy |= self.step(life)
        return busy

    def quiet(self) -> bool:
        """Go on until nobody has had work for some rounds; tell if that came about."""
        idle = 0
        for _ in range(MOST_ROUNDS):
            idle = 0 if self.rounds(1) else idle + 1
            if idle == QUIET_ROUNDS:
                return True
        return False

    def step(self, life: Life, stages: Sequence[str] = STAGES) -> bool:
        """Give stages of a worker a step each, if it is awake; tell if there was work."""
        busy = False
        for stage in stages:
            if life.over or life.asleep:
                break
            self.clock.move(STEP_MS)
            self._seen[life.name] = self.clock.milliseconds()
            try:
                life.loops[stage].step(0.0)
                busy |= life.loops[stage].busy
            except (StageError, BusError) as error:
                self._note_ending(life.name, f"{stage}: {error}", excused=life.stalled)
                self._bury(life.name)
            except _Killed:
                self.kill(life.name)
            self.archive.look()
        return busy

    def close(self) -> None:
        """Let everybody go."""
        for name in list(self.lives):
            self._bury(name)

    def _end_sessions(self) -> None:
        """Give up the seats of those who have been away for too long."""
        now = self.clock.milliseconds()
        for name, seen in list(self._seen.items()):
            life = self.lives.get(name)
            if life is not None and not life.asleep:
                self._seen[name] = now  # Its heartbeats go on between steps.
            elif now - seen > SESSION_MS:
                del self._seen[name]
                if life is not None:
                    life.stalled = True
                for stage in STAGES:
                    self.bus.evict(self.topology.group(stage), name)

    def _note_ending(self, name: str, what: str, *, excused: bool = False) -> None:
        self.endings.append(Ending(name, what, excused=excused or bool(self.losses)))

    def _bury(self, name: str) -> None:
        self._seen[name] = self.clock.milliseconds()
        life = self.lives.pop(name)
        with suppress(_Killed):
            life.end()

    def _on_transaction(self, step: Step, group: str, instance: str) -> None:
        stage = group.rpartition(".")[2]
        if step != "commit":
            return
        if self.measures.overlap and stage in STAGES:
            self._let_others_write(instance, stage)
        if self._doomed == (instance, stage):
            self._doomed = None
            raise _Killed

    def _let_others_write(self, instance: str, stage: str) -> None:
        """Give whoever isn't committing a step in this stage, while a transaction is open."""
        self._committing.append(instance)
        for name, life in list(self.lives.items()):
            if name not in self._committing:
                self.step(life, (stage,))
        self._committing.remove(instance)

    def _new_disk(self) -> Path:
        return self._directory / f"disk-{next(self._disks)}"


def _ignore(life: Life, stage: str, name: str) -> None:
    """Do nothing at a life's points."""
