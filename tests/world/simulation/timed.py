"""A world in which time passes: sessions end, and brokers delete what has expired."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from tests.support.brokers import Brokers
from tests.support.life import Death, Life
from tests.support.points import Point, Strike
from tests.world.clock import HOUR, Clock
from tests.world.measures import Measures
from tests.world.simulation.cluster import MemoryCluster
from tests.world.simulation.losses import Losses
from tests.world.world import Ending, World
from worker.admin.checks import inspect
from worker.bus.memory.transaction import Step
from worker.topology import STAGES

SESSION_MS: Final = 60_000
"""After so long without a step, a worker's seats are given up."""
LOOK_HOURS: Final = 6
"""How often, while time passes, brokers delete and workers work."""
QUIET_ROUNDS: Final = 8
MOST_ROUNDS: Final = 600


class TimedWorld(World):
    """A world whose records are dated by the workers' clock, and have three partitions to go to.

    Nobody starts a worker that has ended. One that is started has to pass the checks of
    ``neardup run``.
    """

    STEP_MS: ClassVar = 100

    def __init__(self, directory: Path, measures: Measures | None = None) -> None:
        """Make topics and offsets; nobody runs yet."""
        super().__init__(directory, measures or Measures(partitions=3))
        self.measures.keep.apply(self.bus, self.topology)
        self.losses = Losses(self.bus, self.topology, self.archive)
        self._seen: dict[str, int] = {}
        self._committing: list[str] = []

    def _calendar(self) -> Clock:
        return self.clock

    def _bus(self) -> Brokers:
        hours = self.measures.keep.offsets
        return Brokers(
            clock=self.clock.milliseconds,
            offsets_retention_ms=None if hours is None else hours * HOUR,
            faults=self._on_transaction,
        )

    # Workers.

    def start(self, name: str, disk: Path | None = None) -> bool:
        """Start a worker that doesn't run, as ``neardup run`` would: only if all checks pass."""
        if name not in self.lives and super().start(name, disk):
            self._seen[name] = self.clock.milliseconds()
        return name in self.lives

    def _may_start(self, name: str) -> bool:
        found = inspect(MemoryCluster(self.bus, self.settings, self.topology), self.settings)
        errors = [str(problem) for problem in found.problems if problem.severity == "error"]
        if errors:
            self._note(name, f"start refused: {errors[0]}")
        return not errors

    def stop(self, name: str) -> None:
        """Let a worker end well. Its seats stay until its session ends."""
        if name in self.lives:
            life = self.lives[name]
            with self._fate_of(life):
                for loop in life.loops.values():
                    loop.finish()
                    loop.close()
                self._bury(life)

    def kill(self, name: str, *, lose_disk: bool = False) -> None:
        """End a worker as SIGKILL does: what was only in memory is gone."""
        self.suffer(name, "dies, disk lost" if lose_disk else "dies")

    def lose(self, name: str) -> None:
        """End a worker with its machine: nobody will start it again."""
        self.kill(name, lose_disk=True)
        self.known.pop(name, None)

    def kill_committing(self, name: str, stage: str) -> None:
        """Kill a worker the next time this stage has written all, and not committed.

        That is instead of any such kill that has not come about.
        """
        self.nemesis.disarm()
        self.nemesis.arm(Strike(Point(name, stage, "commit"), 1, "dies"))

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
            busy = super().rounds(1)
        return busy

    def quiet(self) -> bool:
        """Go on until nobody has had work for some rounds; tell if that came about."""
        idle = 0
        for _ in range(MOST_ROUNDS):
            idle = 0 if self.rounds(1) else idle + 1
            if idle == QUIET_ROUNDS:
                return True
        return False

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
                self._evict(name)

    def _note(self, name: str, what: str, *, excused: bool = False) -> None:
        self.endings.append(Ending(name, what, excused=excused or bool(self.losses)))

    def _gives_up(self, life: Life, stage: str, error: Exception) -> bool:
        self._note(life.name, f"{stage}: {error}", excused=life.stalled)
        self._bury(life)
        return True

    def _follow(self, life: Life, death: Death) -> None:
        self.known[life.name] = death.disk

    def _bury(self, life: Life) -> None:
        self._seen[life.name] = self.clock.milliseconds()
        super()._bury(life)

    def _on_transaction(self, step: Step, group: str, instance: str) -> None:
        stage = group.rpartition(".")[2]
        if step == "commit" and self.measures.overlap and stage in STAGES:
            self._let_others_write(instance, stage)
        super()._on_transaction(step, group, instance)

    def _let_others_write(self, instance: str, stage: str) -> None:
        """Give whoever isn't committing a step in this stage, while a transaction is open."""
        self._committing.append(instance)
        for name, life in list(self.lives.items()):
            if name not in self._committing:
                self.step(life, stage)
        self._committing.remove(instance)
