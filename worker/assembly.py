"""Builds the loops of a worker, each for the generations of the index that it serves."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic, time

from worker.app import Application
from worker.bus import Bus
from worker.bus.fetches import Fetches
from worker.files.journal import Journal
from worker.generations import Generation, Part, Plan
from worker.index.directory import shard_name
from worker.index.leftovers import Leftovers, look_through
from worker.index.memory import StoreMemory
from worker.loop import Loop
from worker.metrics import Metrics
from worker.probe import UNWATCHED, Probe
from worker.settings import Settings
from worker.topology import Topology

__all__ = ["Assembly"]

_log = logging.getLogger(__name__)

_LOGS = frozenset({"fingerprint", "refingerprint"})
"""Stages that write a log of fingerprints."""


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
    ) -> None:
        """Take what all loops share; ``base`` is the topology of generation 0.

        ``probe`` gives what is told of a part's points, by its name. ``wall_clock`` returns seconds
        since the epoch; it tells the age of what nobody uses, and of the last life's death.
        """
        self._settings = settings
        self._base = base
        self._bus = bus
        self._state_dir = state_dir
        self._metrics = metrics
        self._background = background
        self._watch = watch
        self._probe = probe
        self._clock = clock
        self._wall_clock = wall_clock
        self._applications: dict[str, Application] = {}
        self._lock = threading.Lock()
        self._noted: Fetches | None = None
        self.shares = settings.memory()
        self._stores = StoreMemory(
            self.shares.index, write_buffers=self.shares.write_buffers, cache=self.shares.cache
        )
        self._leftovers = Leftovers(wall_clock, lambda: self._stores.stores)

    def loop(self, part: Part, instance: str, current: Generation) -> Loop:
        """Build a loop and seat it in its group; ``current`` is the generation in use."""
        application = self._application(part, current)
        loop = application.loop(part.stage, instance)
        self._applications[part.name] = application
        return loop

    def succeed(self, part: Part, loop: Loop, current: Generation) -> Loop:
        """Build a loop for other generations in the seat of an earlier one, which ends."""
        application = self._application(part, current)
        self._applications[part.name] = application
        return application.succeed(loop)

    def _application(self, part: Part, current: Generation) -> Application:
        base = self._base_of(part)
        own = part.generations[0] if part.generations else current
        following = part.generations[1] if len(part.generations) > 1 else None
        log = part.stage in _LOGS
        return Application(
            (current if log else own).settings(self._settings),
            _written(part, base) if log else own.topology(base),
            self._bus,
            own.directory(self._state_dir) if part.stage == "index" else self._state_dir,
            following=None if log or following is None else following.topology(base),
            source=own.topology(base) if part.stage == "refingerprint" else None,
            building=part.ahead(current) and not part.starts,
            sealed=part.sealed,
            starts=part.starts,
            aside=part.aside,
            fetches=self._fetches,
            metrics=self._metrics,
            stores=self._stores,
            leftovers=self._leftovers,
            background=self._background,
            journal=True,
            watch=self._watch,
            probe=lambda _stage: self._probe(part.name),
            clock=self._clock,
        )

    def _fetches(self) -> Fetches:
        """Return the notes of what is fetched, which all loops share: they die together."""
        with self._lock:
            if self._noted is None:
                documents = self._base.documents
                identity = f"{self._settings.app} {documents} {self._bus.identity(documents)}"
                journal = Journal(self._state_dir / "fetching.journal")
                self._noted = Fetches(
                    documents,
                    identity,
                    journal,
                    self.shares.total,
                    clock=self._clock,
                    wall_clock=self._wall_clock,
                )
            return self._noted

    def _base_of(self, part: Part) -> Topology:
        """Return the topology of generation 0, with as many partitions as the part reads."""
        return self._base.widened(part.partitions) if part.partitions else self._base

    def promote(self, part: Part, loop: Loop | None) -> None:
        """Have a loop that was built for the next generation count as that of the one in use."""
        application = self._applications.get(part.name)
        if application is not None and loop is not None and application.building:
            application.promote(loop)

    def tidy(self, plan: Plan, loops: Mapping[Generation, Loop | None]) -> None:
        """Delete stores that nobody uses; see `Leftovers`. Call it from any thread.

        ``loops`` are those of the index, by generation; None if one isn't open now. While one has
        no seat in its group, nothing of its generation is deleted: nobody else may have it.
        """
        run = {
            generation.directory(self._state_dir): self._owned(generation, loop)
            for generation, loop in loops.items()
        }
        left = {generation.directory(self._state_dir) for generation in plan.left}
        look_through(
            self._state_dir, self._leftovers, self._settings.index.erasure_seconds, run, left
        )

    def discard_snapshots(self, plan: Plan) -> None:
        """Delete the snapshots of generations that were left: nobody ships them any more.

        Those of a generation whose log is deleted can't be told from another cluster's, and stay.
        """
        for generation in plan.left:
            application = self._application(Part("index", (generation,)), plan.current)
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


def _written(part: Part, base: Topology) -> Topology:
    """Return the topology by which the fingerprints of a log are made."""
    return part.generations[-1].signer().topology(base) if part.generations else base
