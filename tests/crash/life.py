"""One life of a worker: the product's own stages and loops, watched at every step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from tests.crash.points import DONE, Fault, watch
from worker.app import Application
from worker.bus.memory import MemoryBus
from worker.loop import Loop
from worker.metrics import Metrics
from worker.settings import Settings
from worker.stages import Index
from worker.store import BandStore
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
        opened: the stores whose files it has open.
    """

    def __init__(  # noqa: PLR0913, PLR0917 -- a process gets all of it
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
        self.opened: list[BandStore] = []
        self._hook = hook
        application = Application(settings, topology, bus, disk, metrics=_METRICS)
        self._open_store = application.open_store
        setattr(application, "open_store", self._opened)  # noqa: B010 -- in place of a method
        self.loops: dict[str, Loop] = {}
        for stage in STAGES:
            loop = application.loop(stage, name)
            loop._clock = clock
            loop._idled_at = clock()
            self._watch_loop(loop, stage)
            self.loops[stage] = loop
        self._watch_snapshots()

    @property
    def index(self) -> Index:
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

    def _watch_loop(self, loop: Loop, stage: str) -> None:
        def hook(name: str) -> None:
            self.tell(stage, name)

        for method in ("poll", "committed", "seek", "resume", "renew"):
            watch(loop._member, method, hook, "look up" if method == "committed" else None)
        watch(loop.stage, "adopt", hook)

    def _watch_snapshots(self) -> None:
        def hook(name: str) -> None:
            self.tell("index", name)

        shards = self.index._stores
        watch(shards, "_put_aside", hook, "put aside")
        watch(shards._recovery, "_put_aside", hook, "put aside")
        if shards._shipper is not None:
            watch(shards._shipper, "_ship", hook, "ship")
            watch(shards._shipper, "_trim_before", hook, "trim")
            watch(shards._recovery, "_fetch", hook, "fetch")
            watch(shards._recovery, "_exchange", hook, "exchange")

    def _opened(self, shard: int, on_keys: Callable[[int, int], None]) -> BandStore:
        self.tell("index", "open")
        store = self._open_store(shard, on_keys)
        self.opened.append(store)
        self._watch_store(store)
        self.tell("index", "open" + DONE)
        return store

    def _watch_store(self, store: BandStore) -> None:
        def hook(name: str) -> None:
            self.tell("index", name)

        flush = store.flush_if_due

        def flush_if_due() -> None:
            due = store.unflushed >= store._options.flush_documents
            if due:
                hook("flush")
            flush()
            if due:
                hook("flush" + DONE)

        setattr(store, "flush_if_due", flush_if_due)  # noqa: B010 -- in place of a method
        watch(store, "write", hook)
        close = store.close

        def close_and_forget(*, flush: bool = True) -> None:
            close(flush=flush)
            self.opened.remove(store)

        setattr(store, "close", close_and_forget)  # noqa: B010 -- in place of a method
        watch(store, "close", hook)
        watch(store, "checkpoint", hook)
