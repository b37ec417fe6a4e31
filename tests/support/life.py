"""One life of a worker: the product's own stages and loops, watched at every step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.points import DONE, Fault
from worker.app import Application
from worker.bus.memory import MemoryBus
from worker.index.store import BandStore
from worker.loop import Loop
from worker.metrics import Metrics
from worker.probe import Files, Point, Probe
from worker.settings import Settings
from worker.stages import Index
from worker.topology import STAGES, Topology

__all__ = ["Death", "Life"]

_METRICS: Final = Metrics()


class Death(NamedTuple):
    """How a life ended that ended badly, and the disk that it left."""

    fault: Fault
    disk: Path


class Life:
    """What a process is: four loops, stores on a disk, and nothing that outlives it.

    Attributes:
        asleep: it stalls, and takes no steps.
        stalled: it has done so.
        superseded: another has taken its name; every step must end in Fenced.
        over: it has ended, in whatever way.
        death: how, until it is buried.
        opened: the shards' files that it has open.
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
    ) -> None:
        """Take a seat in each group; ``hook`` is told of every point, by stage and name."""
        self.name = name
        self.disk = disk
        self.asleep = self.stalled = self.superseded = self.over = False
        self.death: Death | None = None
        self.opened: list[Files] = []
        self._hook = hook
        application = Application(
            settings,
            topology,
            bus,
            disk,
            metrics=_METRICS,
            journal=True,
            probe=lambda stage: _Told(self, stage),
            clock=clock,
        )
        self.loops: dict[str, Loop] = {stage: application.loop(stage, name) for stage in STAGES}

    @property
    def index(self) -> Index[BandStore]:
        """Give the stage that has state."""
        stage = self.loops["index"].stage
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
