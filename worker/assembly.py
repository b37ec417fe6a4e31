"""Builds the loops of a worker, each for the generations of the index that it serves."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic, time

from worker.app import Application, Environment
from worker.bus import Bus
from worker.bus.last_life import LastLife
from worker.generations.generation import Generation, directory_of
from worker.generations.modes import Part
from worker.generations.plan import Plan
from worker.index.directory import shard_name
from worker.index.leftovers import Leftovers, look_through
from worker.index.memory import StoreMemory
from worker.journal import Journal
from worker.loop.loop import Loop
from worker.loop.tracing import Trace
from worker.metrics.metrics import Metrics
from worker.probe import UNWATCHED, Probe
from worker.settings.model import Settings
from worker.stages.document_cache import DocumentCache
from worker.topology import Topology

_log = logging.getLogger(__name__)


class Assembly:
    """Builds loops from settings, a bus and a directory; see `Application`."""

    def __init__(  # noqa: PLR0913 -- what all loops share
        self,
        settings: Settings,
        base: Topology,
        bus: Bus,
        state_dir: Path,
        *,
        metrics: Metrics,
        background: bool = False,
        watch: bool = False,
        probe: Callable[[str], Probe] = lambda _part: UNWATCHED,
        clock: Callable[[], float] = monotonic,
        wall_clock: Callable[[], float] = time,
        trace: Trace | None = None,
    ) -> None:
        """Take what all loops share; ``base`` is the topology of generation 0.

        ``probe`` gives what is told of a part's points, by its name. ``wall_clock`` returns seconds
        since the epoch; it tells the age of what nobody uses, and of the last life's death.
        """
        self._settings = settings
        self._base = base
        self._bus = bus
        self._state_dir = state_dir
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._noted: LastLife | None = None
        self.shares = settings.memory()
        self._stores = StoreMemory(
            self.shares.index, write_buffers=self.shares.write_buffers, cache=self.shares.cache
        )
        self._leftovers = Leftovers(wall_clock, lambda: self._stores.stores)
        self._environment = Environment(
            metrics,
            self._stores,
            self._leftovers,
            DocumentCache(self.shares.lanes, threading.Condition(), clock),
            self._life,
            background=background,
            watch=watch,
            probe=probe,
            clock=clock,
            trace=trace,
        )

    def loop(self, part: Part, instance: str) -> Loop:
        """Build a loop and seat it in its group."""
        return self._application(part).loop(part.stage, instance)

    def succeed(self, part: Part, loop: Loop) -> Loop:
        """Build a loop for another mode in the seat of an earlier one, which ends."""
        return self._application(part).succeed(loop)

    def _application(self, part: Part) -> Application:
        generation, directory = part.generation, self._state_dir
        if part.stage == "index" and generation is not None:
            directory = generation.directory(directory)
        return Application(
            self._settings if generation is None else generation.settings(self._settings),
            part.topology,
            self._bus,
            directory,
            mode=part.mode,
            environment=replace(
                self._environment, probe=lambda _: self._environment.probe(part.name)
            ),
        )

    def _life(self) -> LastLife:
        """Return the notes of what is read, which all loops share: they die together."""
        with self._lock:
            if self._noted is None:
                documents = self._base.documents
                identity = f"{self._settings.app} {documents} {self._bus.identity(documents)}"
                journal = Journal(self._state_dir / "reading.journal")
                self._noted = LastLife(
                    documents,
                    identity,
                    journal,
                    self.shares.total,
                    clock=self._clock,
                    wall_clock=self._wall_clock,
                )
            return self._noted

    def end(self) -> None:
        """Note that the worker ends by itself, once all loops are closed."""
        with self._lock:
            if self._noted is not None:
                self._noted.batches.end()

    def tidy(self, plan: Plan, loops: Mapping[Generation, Loop | None]) -> None:
        """Delete stores that nobody uses; see `Leftovers`. Call it from any thread.

        ``loops`` are those of the index, by generation; None if one isn't open now. While one has
        no seat in its group, nothing of its generation is deleted: nobody else may have it.
        """
        run = {
            generation.directory(self._state_dir): self._owned(generation, loop)
            for generation, loop in loops.items()
        }
        left = {directory_of(number, self._state_dir) for number in plan.gone()}
        look_through(
            self._state_dir, self._leftovers, self._settings.index.erasure_seconds, run, left
        )

    def discard_snapshots(self, plan: Plan) -> None:
        """Delete the snapshots of generations that were left: nobody ships them any more.

        Those of a generation whose log is deleted can't be told from another cluster's, and stay.
        """
        for generation in plan.left:
            part = Part("index", generation.topology(self._base), generation=generation)
            application = self._application(part)
            try:
                repository = application.repository()
                if repository is None:
                    return
                for shard in range(generation.shards):
                    header = application.directories.header(shard)
                    repository.shard(shard).discard(header)
            except Exception as error:  # noqa: BLE001 -- object store libraries have their own
                _log.warning(
                    "the snapshots of generation %d, which is not used any more, could not be"
                    " deleted: %s",
                    generation.number,
                    error,
                )

    def _owned(self, generation: Generation, loop: Loop | None) -> set[Path] | None:
        """Return the stores of the shards that a loop has now; None if that isn't known."""
        if loop is None or not loop.seated:
            return None
        directory = generation.directory(self._state_dir)
        return {directory / shard_name(place.partition) for place in loop.owned}

    def memory(self) -> dict[str, tuple[int, int]]:
        """Return what the stores of all shards take of their memory; see `StoreMemory.taken`."""
        return self._stores.taken()
