"""The parts of a worker: how their loops are built, and the threads that run these."""

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
from worker.process.outage import until_answered
from worker.settings.model import Settings
from worker.stages.document_cache import DocumentCache
from worker.topology import Topology

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
_HURRY_SECONDS = 0.2
"""Between checks of a stage that catches up: a rolling restart waits for it."""
_RETRY_SECONDS = 10.0
_WAIT_SECONDS = 0.1


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


class PartThread:
    """Builds a part's loop and steps it until the worker stops, the part is left, or it fails.

    If the part is changed, another loop takes the seat of the one that runs.

    Attributes:
        part: what it runs.
        loop: its loop, as long as that is open.
        spare: whether the worker goes on without it: a failure is logged, and it is built again.
    """

    def __init__(
        self,
        part: Part,
        build: Callable[[Part, Loop | None], Loop],
        stopping: threading.Event,
        failed: Callable[[BaseException], None],
        *,
        spare: bool = False,
    ) -> None:
        """Take what builds the loop, and what is told of its failure.

        ``build`` gets the loop whose seat the new one takes, if there is one.
        """
        self.part = part
        self.spare = spare
        self.loop: Loop | None = None
        self._build = build
        self._failed = failed
        self._changed = threading.Event()
        self._ending = _Ending(stopping)
        self.thread = threading.Thread(target=self._run, name=part.name, daemon=True)

    def change(self, part: Part) -> None:
        """Have it run another part in the same seat."""
        self.part = part
        self._changed.set()

    def leave(self) -> None:
        """Have it leave its group for good, and end."""
        self._ending.set()

    def _run(self) -> None:
        while not self._ending.is_set() and not self._lived():
            _log.info("%s is tried again in %.0f s", self.part.name, _RETRY_SECONDS)
            self._ending.wait(_RETRY_SECONDS)

    def _lived(self) -> bool:
        """Build the loop and step it to its end; return False if it is to be tried again."""
        again = False
        try:
            self._changed.clear()
            self.loop = until_answered(lambda: self._build(self.part, None), self._ending)
            while self.loop is not None and self._step(self.loop):
                self.loop = self._build(self.part, self.loop)
        except BaseException as error:  # noqa: BLE001 -- carried to the main thread, which raises it
            again = self._handle(error)
        loop, self.loop = self.loop, None
        if loop is not None:
            try:
                # A seat that is left for good goes to another worker; one that is kept waits.
                loop.close(leave=self._ending.own)
            except Exception as error:  # noqa: BLE001 -- carried to the main thread, which raises it
                again = self._handle(error)
        return not again

    def _step(self, loop: Loop) -> bool:
        """Step a loop; return True if another one is to take its seat."""
        seen = monotonic()
        while not self._ending.is_set():
            if self._changed.is_set():
                self._changed.clear()
                return True
            loop.step()
            if monotonic() - seen >= (_HURRY_SECONDS if loop.catching_up else _LOOK_SECONDS):
                seen = monotonic()
                loop.lag()
        loop.finish()
        return False

    def _handle(self, error: BaseException) -> bool:
        """Report a failure; return whether the worker goes on without this part for a while."""
        if self.spare:
            _log.error("%s, which is being built, failed: %s", self.part.name, error)
        else:
            self._failed(error)
        return self.spare


class _Ending(threading.Event):
    """Is set if the worker stops, or by itself.

    Attributes:
        own: whether it was set by itself.
    """

    def __init__(self, stopping: threading.Event) -> None:
        super().__init__()
        self._stopping = stopping

    @property
    def own(self) -> bool:
        return super().is_set()

    def is_set(self) -> bool:
        return self.own or self._stopping.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        deadline = None if timeout is None else monotonic() + timeout
        while not self.is_set() and (deadline is None or monotonic() < deadline):
            super().wait(_WAIT_SECONDS)
        return self.is_set()
