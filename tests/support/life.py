"""One life of a worker: the product's own stages and loops, watched at every step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.points import DONE, Fault
from worker.bus.memory.bus import MemoryBus
from worker.generations.modes import Part, parts
from worker.generations.plan import Plan
from worker.index.store import BandStore
from worker.loop.loop import Loop
from worker.metrics.metrics import Metrics
from worker.probe import Files, Point, Probe
from worker.process.parts import Assembly
from worker.settings.model import Settings
from worker.stages.index import Index
from worker.topology import STAGES, Topology

_METRICS: Final = Metrics()


class Death(NamedTuple):
    """How a life ended that ended badly, and the disk that it left."""

    fault: Fault
    disk: Path


class Life:
    """What a process is: its loops, stores on a disk, and nothing that outlives it.

    Attributes:
        asleep: it stalls, and takes no steps.
        stalled: it has done so.
        superseded: another has taken its name; every step must end in Fenced.
        over: it has ended, in whatever way.
        death: how, until it is buried.
        opened: the shards' files that it has open.
        plan: the generations that it runs.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        topology: Topology,
        bus: MemoryBus,
        disk: Path,
        hook: Callable[[Life, str, str], None],
        clock: Callable[[], float],
        plan: Plan | None = None,
    ) -> None:
        """Take a seat in each group; ``hook`` is told of every point, by stage and name.

        ``topology`` is that of the index's first generation; ``plan`` says which are run.
        """
        self.name = name
        self.disk = disk
        self.asleep = self.stalled = self.superseded = self.over = False
        self.death: Death | None = None
        self.opened: list[Files] = []
        self._hook = hook
        self._base = topology
        self._assembly = Assembly(
            settings,
            topology,
            bus,
            disk,
            metrics=_METRICS,
            probe=lambda part: _Told(self, part),
            clock=clock,
        )
        self.loops: dict[str, Loop] = {}
        self._parts: dict[str, Part] = {}
        self.follow(plan or Plan.of(settings))

    def follow(self, plan: Plan) -> None:
        """Run what the plan says: leave groups, and take seats in others."""
        wanted = {part.name: part for part in parts(STAGES, plan, self._base)}
        for name, part in list(self._parts.items()):
            other = wanted.get(name)
            if other is not None and other != part:
                self._parts[name] = other
                self.loops[name] = self._assembly.succeed(other, self.loops[name])
            elif other is None:
                del self._parts[name]
                loop = self.loops.pop(name)
                loop.finish()
                loop.close(leave=True)
        for name, part in wanted.items():
            if name not in self.loops:
                self.loops[name] = self._assembly.loop(part, self.name)
                self._parts[name] = part
        self.plan = plan

    @property
    def index(self) -> Index[BandStore]:
        """Give the stage that has state."""
        number = self.plan.current.number
        stage = self.loops[f"index-g{number}" if number else "index"].stage
        assert isinstance(stage, Index)
        return stage

    def tell(self, stage: str, name: str) -> None:
        """Tell the hook of a point, as long as there is somebody to be struck."""
        if not self.over:
            self._hook(self, stage, name)

    def end(self) -> None:
        """Let go of everything in memory and of the files, without another step."""
        self.over = True
        for loop in self.loops.values():
            loop.stage.close()


class _Told(Probe):
    """Tells a life of the points of one of its stages, and keeps what files it has open."""

    def __init__(self, life: Life, stage: str) -> None:
        self._life = life
        self._stage = stage

    def before(self, point: Point) -> None:
        self._life.tell(self._stage, point)

    def after(self, point: Point) -> None:
        self._life.tell(self._stage, point + DONE)

    def opened(self, files: Files) -> None:
        self._life.opened.append(files)

    def closed(self, files: Files) -> None:
        self._life.opened.remove(files)
